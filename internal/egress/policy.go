package egress

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"code.dny.dev/ssrf"
)

// Policy says where calls may go beyond public https addresses.
type Policy struct {
	AllowPrivate bool     // opens private and loopback addresses, http allowed there; metadata addresses stay refused
	Allow        []string // places: CIDR or host[:port]; http allowed there
}

// place is an opened place: a network, or a name with perhaps a port.
type place struct {
	prefix netip.Prefix
	host   string
	port   string // "" for every port
}

func parsePlace(s string) (place, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return place{prefix: p.Masked()}, nil
	}
	host, port := s, ""
	if h, p, err := net.SplitHostPort(s); err == nil {
		host, port = h, p
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := strconv.ParseUint(port, 10, 16); port != "" && err != nil {
		host = ""
	}
	if host == "" || strings.ContainsAny(host, "/@? ") || (strings.Contains(host, ":") && !isAddr(host)) {
		return place{}, fmt.Errorf("--egress-allow %q is not a place: give a CIDR such as 10.0.0.0/8, or host[:port] such as api.internal:8443", s)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if port == "" {
			return place{prefix: netip.PrefixFrom(a, a.BitLen())}, nil
		}
		return place{prefix: netip.PrefixFrom(a, a.BitLen()), port: port}, nil
	}
	return place{host: host, port: port}, nil
}

func isAddr(s string) bool { _, err := netip.ParseAddr(s); return err == nil }

func (p place) hasAddr(a netip.AddrPort) bool {
	return p.prefix.IsValid() && p.prefix.Contains(a.Addr().Unmap()) && (p.port == "" || p.port == fmt.Sprint(a.Port()))
}

func (p place) hasName(host, port string) bool {
	return p.host != "" && p.host == strings.ToLower(host) && (p.port == "" || p.port == port)
}

// metadata lists the addresses at which clouds serve credentials, and all
// link-local ones: refused whatever else is open.
func metadata() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
		netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("168.63.129.16/32"),
		netip.MustParsePrefix("100.100.100.200/32"),
	}
}

// private lists what AllowPrivate opens.
func private() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range []string{"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7"} {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func within(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// public refuses every address that is not a public one.
func public() *ssrf.Guardian {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))
}
