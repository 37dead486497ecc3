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
	host, port := strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), ""
	if h, p, err := net.SplitHostPort(s); err == nil {
		host, port = h, p
	}
	host, ok := plainHost(host)
	n, err := strconv.ParseUint(port, 10, 16)
	if !ok || (port != "" && (err != nil || n == 0)) || strings.HasSuffix(s, ":") && port == "" {
		return place{}, fmt.Errorf("--egress-allow %q is not a place: give a CIDR such as 10.0.0.0/8, or host[:port] such as api.internal:8443", s)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap().WithZone("")
		return place{prefix: netip.PrefixFrom(a, a.BitLen()), port: port}, nil
	}
	return place{host: host, port: port}, nil
}

func (p place) hasAddr(a netip.AddrPort) bool {
	return p.prefix.IsValid() && p.prefix.Contains(a.Addr().Unmap().WithZone("")) && (p.port == "" || p.port == fmt.Sprint(a.Port()))
}

func (p place) hasName(host, port string) bool {
	return p.host != "" && p.host == strings.TrimSuffix(strings.ToLower(host), ".") && (p.port == "" || p.port == port)
}

// metadata lists the addresses at which clouds serve credentials, and all
// link-local ones: refused whatever else is open.
func metadata() []netip.Prefix {
	return prefixes("169.254.0.0/16", "fe80::/10", // link-local, and so most clouds
		"fd00:ec2::/32",      // Amazon
		"fd20:ce::254/128",   // Google
		"168.63.129.16/32",   // Azure
		"100.100.100.200/32", // Alibaba
		"192.0.0.192/32",     // Oracle
	)
}

// private lists what AllowPrivate opens.
func private() []netip.Prefix {
	return prefixes("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7")
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// faces gives an address and the IPv4 addresses that it may stand for: mapped,
// compatible, translated, NAT64 (the well-known prefix and the local one),
// 6to4 and Teredo.
func faces(a netip.Addr) []netip.Addr {
	a = a.Unmap().WithZone("")
	out := []netip.Addr{a}
	if a.Is4() {
		return out
	}
	b := a.As16()
	v4 := func(i int) { out = append(out, netip.AddrFrom4([4]byte(b[i:i+4]))) }
	switch p := prefixes("2002::/16", "2001::/32", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"); {
	case p[0].Contains(a):
		v4(2)
	case p[1].Contains(a):
		v4(4) // the server
		for i := 12; i < 16; i++ {
			b[i] ^= 0xff
		}
		v4(12) // the client
	case within(p[2:], a):
		v4(12)
	}
	return out
}

func within(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a.Unmap().WithZone("")) {
			return true
		}
	}
	return false
}

// public refuses every address that is not a public one.
func public() *ssrf.Guardian {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))
}
