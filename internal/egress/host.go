package egress

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// wellFormed refuses what is no absolute http or https URL with a plain host.
// It gives the host as it is resolved: in lower case, without a final dot, in
// ASCII.
func wellFormed(u *url.URL) (string, error) {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return "", refuse(u, "use https", "the scheme %q is not allowed", u.Scheme)
	case u.User != nil:
		return "", refuse(u, "put credentials into a header", "a URL must not carry a user or a password")
	case u.Hostname() == "":
		return "", refuse(u, "give an absolute URL such as https://agent.example.com", "the URL names no host")
	case strings.Contains(u.Hostname(), "%"):
		return "", refuse(u, "leave the zone out", "an address with a zone is not allowed")
	}
	if _, err := strconv.ParseUint(portOf(u), 10, 16); err != nil {
		return "", refuse(u, "give a port from 1 to 65535", "the port %q is none", u.Port())
	}
	host, ok := plainHost(u.Hostname())
	if !ok {
		return "", refuse(u, "write an address as four decimal numbers, or a name", "the host %q is an address in an unusual form, or no name", u.Hostname())
	}
	return host, nil
}

// plainHost is a host in the one form in which it is compared and resolved.
// net/http turns other scripts' digits and dots into ASCII before it dials, so
// what comes of that counts. False: a number that only lenient parsers read as
// an address, or no name at all.
func plainHost(host string) (string, bool) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String(), true
	}
	ascii := strings.ToLower(host)
	for _, r := range host {
		if r >= 0x80 {
			to, err := idna.Lookup.ToASCII(host)
			if err != nil {
				return "", false
			}
			ascii = to
			break
		}
	}
	ascii = strings.TrimSuffix(ascii, ".")
	if ascii == "" || strings.ContainsAny(ascii, "/@?#:[]% ") || numeric(ascii) {
		return "", false
	}
	return ascii, true
}

// numeric reports whether a host would be read as an address by lenient
// parsers: decimal, octal, hexadecimal or short. Its last label tells.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.HasPrefix(last, "0x") {
		_, err := strconv.ParseUint("0"+last[2:], 16, 64)
		return err == nil
	}
	return strings.Trim(last, "0123456789") == ""
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}
