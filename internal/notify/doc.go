// Package notify tells a workspace's own receiver what it should know: that a
// gate has opened, that a reminder is due, that a run has failed.
//
// A notice is a row that was written with the change that it is about. It is
// sent at least once, with back-off over about a day, and then given up; in
// which order is not promised. What is sent follows the Standard Webhooks
// convention, for which most languages have a library:
//
//	webhook-id: msg_...           the same for every try
//	webhook-timestamp: 1767225600 of this try, in seconds
//	webhook-signature: v1,<base64 of HMAC-SHA256 over "id.timestamp.body">
//
// The key of the HMAC is what the secret holds after whsec_, decoded from
// base64. A receiver answers 2xx within ten seconds; redirects are not
// followed.
package notify
