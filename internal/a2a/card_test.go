package a2a_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/a2a"
)

// spec: R-088 R-089 A-031 A-032 A-033
func TestParseCard(t *testing.T) {
	t.Parallel()
	rpc := func(url, version string) a2a.Interface {
		return a2a.Interface{URL: url, Binding: a2a.BindingJSONRPC, Version: version}
	}
	rest := func(url, version string) a2a.Interface {
		return a2a.Interface{URL: url, Binding: a2a.BindingHTTPJSON, Version: version}
	}
	long := strings.Repeat("x", 3000)
	for name, tc := range map[string]struct {
		card  string
		want  []a2a.Interface
		fault string // of Validate; empty: valid
	}{
		"minimal": {card: `{"name":"n","url":"https://a"}`},
		"1.0": {card: `{"name":"n","supportedInterfaces":[{"url":"https://a/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":"x"},{"url":"https://a/rest","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}]}`,
			want: []a2a.Interface{{URL: "https://a/rpc", Binding: "JSONRPC", Version: "1.0", Tenant: "x"}, rest("https://a/rest", "1.0")}},
		"1.0 without version":     {card: `{"name":"n","supportedInterfaces":[{"url":"https://a","protocolBinding":"jsonrpc"}]}`, want: []a2a.Interface{rpc("https://a", "1.0")}},
		"0.3":                     {card: `{"name":"n","protocolVersion":"0.3.0","url":"https://a"}`, want: []a2a.Interface{rpc("https://a", "0.3.0")}},
		"0.3 with a transport":    {card: `{"name":"n","preferredTransport":"HTTP+JSON","url":"https://a"}`, want: []a2a.Interface{rest("https://a", "0.3")}},
		"0.3 with more":           {card: `{"name":"n","protocolVersion":"0.3.0","url":"https://a","preferredTransport":"JSONRPC","additionalInterfaces":[{"url":"https://a","transport":"JSONRPC"},{"url":"https://b","transport":"HTTP+JSON"}]}`, want: []a2a.Interface{rpc("https://a", "0.3.0"), rest("https://b", "0.3.0")}},
		"the agent page's list":   {card: `{"name":"n","interfaces":[{"url":"https://a","transport":"JSONRPC"}]}`, want: []a2a.Interface{rpc("https://a", "0.3")}},
		"blended, same place":     {card: `{"name":"n","protocolVersion":"0.3.0","url":"https://a","supportedInterfaces":[{"url":"https://a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, want: []a2a.Interface{rpc("https://a", "1.0"), rpc("https://a", "0.3.0")}},
		"blended, top url is 0.3": {card: `{"name":"n","url":"https://a/old","supportedInterfaces":[{"url":"https://a","protocolBinding":"JSONRPC"}]}`, want: []a2a.Interface{rpc("https://a", "1.0"), rpc("https://a/old", "0.3")}},
		"gRPC first": {card: `{"name":"n","supportedInterfaces":[{"url":"a:443","protocolBinding":"GRPC","protocolVersion":"1.0"},{"url":"https://a","protocolBinding":"JSON-RPC","protocolVersion":"1.0"}]}`,
			want: []a2a.Interface{{URL: "a:443", Binding: "GRPC", Version: "1.0"}, rpc("https://a", "1.0")}},
		"members of odd types": {card: `{"name":"n","description":7,"capabilities":[],"securitySchemes":"x","supportedInterfaces":[1,null,{"url":5},{"url":"https://a","protocolBinding":"JSONRPC","tenant":{}}]}`, want: []a2a.Interface{rpc("https://a", "1.0")}},
		"byte order mark":      {card: "\xef\xbb\xbf" + `{"name":"n","url":"https://a"}`},
		"no name":              {card: `{"url":"https://a"}`, fault: "no name"},
		"no endpoint":          {card: `{"name":"n"}`, fault: "declares no endpoint"},
		"gRPC only":            {card: `{"name":"n","preferredTransport":"GRPC","url":"https://a"}`, want: []a2a.Interface{{URL: "https://a", Binding: "GRPC", Version: "0.3"}}, fault: "none of its interfaces"},
		"relative url":         {card: `{"name":"n","url":"/a2a"}`, fault: "not an absolute http or https URL"},
		"a user in the url":    {card: `{"name":"n","url":"https://u:p@a"}`, fault: "user name"},
		"a long tenant":        {card: `{"name":"n","supportedInterfaces":[{"url":"https://a","protocolBinding":"JSONRPC","tenant":"` + long + `"}]}`, want: []a2a.Interface{{URL: "https://a", Binding: a2a.BindingJSONRPC, Version: "1.0", Tenant: long}}, fault: "tenant is longer"},
		"a long URL":           {card: `{"name":"n","supportedInterfaces":[{"url":"https://a/` + long + `","protocolBinding":"JSONRPC"}]}`, want: []a2a.Interface{rpc("https://a/"+long, "1.0")}, fault: "longer than 2048"},
		"another scheme":       {card: `{"name":"n","supportedInterfaces":[{"url":"file:///etc/passwd","protocolBinding":"JSONRPC"}]}`, want: []a2a.Interface{rpc("file:///etc/passwd", "1.0")}, fault: "cannot be called"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := a2a.ParseCard([]byte(tc.card))
			if err != nil || !reflect.DeepEqual(c.Interfaces, tc.want) {
				t.Fatalf("got %+v, %v, want %+v", c, err, tc.want)
			}
			err = c.Validate()
			if tc.fault == "" && err != nil || tc.fault != "" && (!errors.Is(err, a2a.ErrCard) || !strings.Contains(err.Error(), tc.fault)) {
				t.Errorf("Validate: got %v, want %q", err, tc.fault)
			}
		})
	}
}

func TestParseCardRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		card string
		want error
	}{
		"empty":       {"", a2a.ErrCard},
		"a list":      {"[]", a2a.ErrCard},
		"null":        {"null", a2a.ErrCard},
		"a page":      {"<html>", a2a.ErrCard},
		"cut":         {`{"name":`, a2a.ErrCard},
		"a million [": {`{"name":` + strings.Repeat("[", 1_000_000), a2a.ErrTooDeep},
	} {
		if c, err := a2a.ParseCard([]byte(tc.card)); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, %v, want %v", name, c, err, tc.want)
		}
	}
}

// TestCardIsBounded: what is displayed is short, on one line and visible.
func TestCardIsBounded(t *testing.T) {
	t.Parallel()
	c := parseCard(t, `{"name":"`+strings.Repeat("é", 5000)+`","description":"a\u0000\u001b[31m\n\u202eb","url":"https://a","capabilities":{"extensions":[{"uri":"u","required":true},{"uri":"v"},7]}}`)
	if n := len([]rune(c.Name)); n != 200 || c.Description != "a[31m b" || !reflect.DeepEqual(c.Extensions, []string{"u"}) {
		t.Errorf("got a name of %d characters, %q and %v, want 200, %q and [u]", n, c.Description, c.Extensions, "a[31m b")
	}
	same, other := parseCard(t, `{"name":"n","url":"https://a"}`), parseCard(t, `{"name":"n", "url":"https://a"}`)
	if len(same.Hash) != 64 || same.Hash == other.Hash {
		t.Errorf("got hashes %q and %q, want two different ones of 64 digits", same.Hash, other.Hash)
	}
}

func TestHasJSONRPC(t *testing.T) {
	t.Parallel()
	for card, want := range map[string]bool{
		`{"name":"n","url":"https://a"}`: true,
		`{"name":"n","supportedInterfaces":[{"url":"https://a","protocolBinding":"HTTP+JSON"},{"url":"https://a","protocolBinding":"JSONRPC"}]}`: true,
		`{"name":"n","supportedInterfaces":[{"url":"https://a","protocolBinding":"HTTP+JSON"}]}`:                                                 false,
	} {
		if got := parseCard(t, card).HasJSONRPC(); got != want {
			t.Errorf("%s: got %t, want %t", card, got, want)
		}
	}
}

// spec: A-035
// spec: A-073
// spec: A-074
func TestNeedsToken(t *testing.T) {
	t.Parallel()
	const (
		oauth  = `"g":{"oauth2SecurityScheme":{"flows":{}}}`
		oidc   = `"g":{"openIdConnectSecurityScheme":{"openIdConnectUrl":"https://i"}}`
		jwt    = `"g":{"httpAuthSecurityScheme":{"scheme":"Bearer","bearerFormat":"jwt"}}`
		needG  = `"securityRequirements":[{"schemes":{"g":{"list":["run"]}}}]`
		needG3 = `"security":[{"g":[]}]`
	)
	for name, tc := range map[string]struct {
		schemes, needs string
		want, fails    bool
	}{
		"nothing":                       {schemes: "", needs: `"x":1`},
		"only declared":                 {schemes: oauth, needs: `"x":1`},
		"empty lists":                   {schemes: oauth, needs: `"securityRequirements":[],"security":null`},
		"oauth2":                        {schemes: oauth, needs: needG, want: true},
		"openIdConnect":                 {schemes: oidc, needs: needG, want: true},
		"bearer with JWT":               {schemes: jwt, needs: needG, want: true},
		"the SDK's plain list":          {schemes: jwt, needs: `"securityRequirements":[{"schemes":{"g":["run"]}}]`, want: true},
		"requirement without schemes":   {schemes: jwt, needs: `"securityRequirements":[{"g":[]}]`, want: true},
		"requirement without list":      {schemes: jwt, needs: `"security":{"g":[]}`, want: true},
		"0.3 oauth2":                    {schemes: `"g":{"type":"oauth2","flows":{}}`, needs: needG3, want: true},
		"0.3 openIdConnect":             {schemes: `"g":{"type":"openIdConnect"}`, needs: needG3, want: true},
		"0.3 bearer JWT":                {schemes: `"g":{"type":"http","scheme":"BEARER","bearerFormat":"Jwt"}`, needs: needG3, want: true},
		"a leaked $case":                {schemes: `"g":{"scheme":{"$case":"httpAuthSecurityScheme","value":{"scheme":"Bearer","bearerFormat":"JWT"}}}`, needs: needG, want: true},
		"bare oauth2":                   {schemes: `"g":{"flows":{"clientCredentials":{}}}`, needs: needG, want: true},
		"bare openIdConnect":            {schemes: `"g":{"openIdConnectUrl":"https://i"}`, needs: needG, want: true},
		"bare bearer JWT":               {schemes: `"g":{"scheme":"bearer","bearerFormat":"JWT"}`, needs: needG, want: true},
		"anonymous allowed":             {schemes: oauth, needs: `"security":[{"g":[]},{}]`},
		"anonymous allowed, 1.0":        {schemes: oauth, needs: `"securityRequirements":[{"schemes":{"g":{"list":[]}}},{"schemes":{}}]`},
		"one of two lists":              {schemes: oauth, needs: needG + "," + needG3, want: true},
		"api key":                       {schemes: `"g":{"apiKeySecurityScheme":{}}`, needs: needG},
		"bearer of another format":      {schemes: `"g":{"type":"http","scheme":"bearer"}`, needs: needG3},
		"basic":                         {schemes: `"g":{"type":"http","scheme":"basic"}`, needs: needG3},
		"api key or oauth2":             {schemes: `"k":{"type":"apiKey"},` + oauth, needs: `"security":[{"k":[]},{"g":[]}]`, want: true},
		"api key and oauth2":            {schemes: `"k":{"type":"apiKey"},` + oauth, needs: `"security":[{"k":[],"g":[]}]`, want: true},
		"not declared":                  {needs: needG, fails: true},
		"of no known kind":              {schemes: `"g":{"type":"quantum"}`, needs: needG, fails: true},
		"scheme is no object":           {schemes: `"g":7`, needs: needG, fails: true},
		"unknown and oauth2":            {schemes: `"k":{},` + oauth, needs: `"security":[{"k":[],"g":[]}]`, fails: true},
		"unknown or oauth2":             {schemes: `"k":{},` + oauth, needs: `"security":[{"k":[]},{"g":[]}]`, want: true},
		"requirement that is a word":    {schemes: oauth, needs: `"security":["g"]`, fails: true},
		"requirement list is a word":    {schemes: oauth, needs: `"security":"g"`, fails: true},
		"too many to read":              {schemes: oauth, needs: `"security":[` + strings.Repeat(`{"g":[]},`, 70) + `{}]`, fails: true},
		"unreadable cannot be declared": {schemes: `"\u0000unreadable":{"type":"oauth2"}`, needs: `"security":"g"`, fails: true},
	} {
		c := parseCard(t, `{"name":"n","url":"https://a","securitySchemes":{`+tc.schemes+`},`+tc.needs+`}`)
		got, err := c.NeedsToken()
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: got %t, %v, want %t, an error: %t", name, got, err, tc.want, tc.fails)
		}
		if err != nil {
			checkErrorText(t, err, "")
		}
	}
}
