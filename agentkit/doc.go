// Package agentkit builds a recovery agent: a program that Longstop asks first
// when a step of a workflow has failed. An agent is one function from a [Case]
// to an [Action]; this package carries it over whatever the workspace is set
// to use:
//
//	agent := &agentkit.Agent{Name: "billing", Description: "Knows the billing API.", Mend: mend}
//	http.ListenAndServe("127.0.0.1:9000", agent.Handler("http://127.0.0.1:9000")) // A2A, and MCP at /mcp
//	agent.Stdio(ctx)                                                              // MCP, as a command
//	agent.WorkInbox(ctx, agentkit.Inbox{URL: server, Key: key})                   // no server: polls
//
// `longstop conform` tries an agent with forty failures before it is trusted.
package agentkit
