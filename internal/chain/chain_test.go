package chain_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"

	"github.com/longstop-dev/longstop/internal/chain"
	"github.com/longstop-dev/longstop/internal/flow"
)

// record makes a record of links of the sizes given.
func record(t *testing.T, sizes ...int) ([]flow.Audit, flow.AuditHead) {
	t.Helper()
	var rows []flow.Audit
	var head flow.AuditHead
	by := flow.Caller{Workspace: "ws", Person: "person_1", KeyID: "key_1"}
	for _, n := range sizes {
		var texts [][]byte
		first := int64(len(rows)) + 1
		for range n {
			a := by.Did("runs.start", fmt.Sprintf("run/%d", len(rows)), time.Date(2026, 1, 2, 3, 4, 5, len(rows)*1000, time.UTC), map[string]any{"workflow": "w\u2028<é>", "n": len(rows)})
			a.Seq = int64(len(rows)) + 1
			text, err := chain.Canonical(a)
			if err != nil {
				t.Fatal(err)
			}
			texts, rows = append(texts, text), append(rows, a)
		}
		head = flow.AuditHead{Seq: int64(len(rows)), Hash: chain.Link(head.Hash, first, texts)}
		rows[len(rows)-1].Hash = head.Hash
	}
	return rows, head
}

func verify(rows []flow.Audit, head flow.AuditHead, kept string) chain.Report {
	v := chain.NewVerifier(kept)
	for _, a := range rows {
		v.Add(a)
	}
	return v.End(head)
}

func TestAWholeRecord(t *testing.T) {
	t.Parallel()
	rows, head := record(t, 1, 3, 2)
	r := verify(rows, head, rows[0].Hash)
	if !r.OK || r.Rows != 6 || r.Links != 3 || r.Head != head {
		t.Errorf("got %+v, want 6 rows in 3 links up to %+v", r, head)
	}
	if r := verify(nil, flow.AuditHead{}, ""); r.OK || !strings.Contains(r.Broken.Why, "emptied") {
		t.Errorf("an empty record: got %+v, want it found", r)
	}
}

// TestTheHashIsWhatIsDocumented computes a link by hand, as somebody would who
// has the documentation and no code of ours.
func TestTheHashIsWhatIsDocumented(t *testing.T) {
	t.Parallel()
	a := flow.Caller{Workspace: "ws", Person: "p", KeyID: "k"}.Did("secrets.put", "secret/api", time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC), map[string]any{"b": 1, "a": "é<"})
	text, err := chain.Canonical(a)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"at":"2026-01-02T03:04:05.000678Z","author":"p","details":{"a":"é<","b":1},"keyId":"k","op":"secrets.put","outcome":"done","target":"secret/api","workspace":"ws"}`
	if string(text) != want {
		t.Errorf("canonical: got %s, want %s", text, want)
	}
	sum := sha256.Sum256([]byte(`{"first":7,"previous":"abc","rows":[` + want + `]}`))
	if got := chain.Link("abc", 7, [][]byte{text}); got != hex.EncodeToString(sum[:]) {
		t.Errorf("link: got %s, want %x", got, sum)
	}
	a.Seq, a.Hash = 9, "x"
	if again, err := chain.Canonical(a); err != nil || string(again) != want {
		t.Errorf("with seq and hash: got %s, %v, want the same", again, err)
	}
}

// TestTheTextIsCanonical compares with the canonical JSON of the row as it is
// exported, whatever its texts hold.
func TestTheTextIsCanonical(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain", `"quoted" \ <&>`, "\u2028 \u0001 \t", "é 😀 ö", ""} {
		a := flow.Caller{Workspace: text, Person: text, KeyID: text}.Did("op.x", text, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), map[string]any{text: text, "é": 1.5e30, "b": nil})
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatal(err)
		}
		delete(members, "seq")
		if raw, err = json.Marshal(members); err != nil {
			t.Fatal(err)
		}
		want, err := jcs.Transform(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := chain.Canonical(a); err != nil || string(got) != string(want) {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestWhatIsTamperedWithIsFound changes a record in every way.
func TestWhatIsTamperedWithIsFound(t *testing.T) {
	t.Parallel()
	edit := func(f func(*flow.Audit)) func([]flow.Audit, *flow.AuditHead) []flow.Audit {
		return func(rows []flow.Audit, _ *flow.AuditHead) []flow.Audit { f(&rows[2]); return rows }
	}
	for name, tc := range map[string]struct {
		do          func([]flow.Audit, *flow.AuditHead) []flow.Audit
		first, last int64
		why         string
	}{
		"at":        {edit(func(a *flow.Audit) { a.At = a.At.Add(time.Microsecond) }), 2, 4, "changed"},
		"author":    {edit(func(a *flow.Audit) { a.Author = "person_2" }), 2, 4, "changed"},
		"key":       {edit(func(a *flow.Audit) { a.KeyID = "key_2" }), 2, 4, "changed"},
		"op":        {edit(func(a *flow.Audit) { a.Op = "runs.cancel" }), 2, 4, "changed"},
		"target":    {edit(func(a *flow.Audit) { a.Target = "run/other" }), 2, 4, "changed"},
		"outcome":   {edit(func(a *flow.Audit) { a.Outcome = "refused" }), 2, 4, "changed"},
		"details":   {edit(func(a *flow.Audit) { a.Details = json.RawMessage(`{"workflow":"other"}`) }), 2, 4, "changed"},
		"no JSON":   {edit(func(a *flow.Audit) { a.Details = json.RawMessage(`{"workflow"`) }), 3, 3, "cannot be read"},
		"workspace": {edit(func(a *flow.Audit) { a.Workspace = "ws2" }), 3, 3, "another workspace"},
		"a hash":    {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit { r[3].Hash = r[0].Hash; return r }, 2, 4, "hash"},
		"no hash":   {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit { r[3].Hash = ""; return r }, 2, 6, "hash"},
		"deleted":   {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit { return slices.Delete(r, 2, 3) }, 3, 3, "missing"},
		"deleted and numbered again": {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit {
			r = slices.Delete(r, 2, 3)
			for i := range r {
				r[i].Seq = int64(i) + 1
			}
			return r
		}, 2, 3, "removed"},
		"first row gone": {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit { return r[1:] }, 1, 1, "missing"},
		"moved":          {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit { r[1], r[2] = r[2], r[1]; return r }, 2, 2, "moved"},
		"moved and numbered again": {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit {
			r[1], r[2] = r[2], r[1]
			r[1].Seq, r[2].Seq = 2, 3
			return r
		}, 2, 4, "moved"},
		"twice":             {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit { return slices.Insert(r, 2, r[1]) }, 2, 2, "twice"},
		"cut at a link":     {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit { return r[:4] }, 5, 6, "removed"},
		"cut within a link": {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit { return r[:3] }, 2, 3, "no hash"},
		"all gone":          {func([]flow.Audit, *flow.AuditHead) []flow.Audit { return nil }, 1, 6, "removed"},
		"the head moved back": {func(r []flow.Audit, h *flow.AuditHead) []flow.Audit {
			*h = flow.AuditHead{Seq: 4, Hash: r[3].Hash}
			return r
		}, 5, 6, "head"},
		"the head gone": {func(r []flow.Audit, h *flow.AuditHead) []flow.Audit { *h = flow.AuditHead{}; return r }, 1, 6, "head"},
		"rows added": {func(r []flow.Audit, _ *flow.AuditHead) []flow.Audit {
			a := r[5]
			a.Seq, a.Hash = 7, ""
			return append(r, a)
		}, 7, 7, "added"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, head := record(t, 1, 3, 2)
			rows = tc.do(rows, &head)
			r := verify(rows, head, "")
			if r.OK || r.Broken == nil || r.Broken.First != tc.first || r.Broken.Last != tc.last || !strings.Contains(r.Broken.Why, tc.why) {
				t.Errorf("got %+v (%+v), want a break at %d to %d that says %q", r, r.Broken, tc.first, tc.last, tc.why)
			}
		})
	}
}

// TestOnlyAKeptHeadShowsARecordWrittenAnew is why a head is kept elsewhere.
func TestOnlyAKeptHeadShowsARecordWrittenAnew(t *testing.T) {
	t.Parallel()
	rows, kept := record(t, 1, 3)
	for name, forged := range map[string][]int{"written anew": {4}, "cut with its head": {1}, "emptied": {}} {
		others, head := record(t, forged...)
		if r := verify(others, head, ""); !r.OK && len(others) > 0 {
			t.Errorf("%s, without the head: got %+v, want nothing found", name, r.Broken)
		}
		if r := verify(others, head, kept.Hash); r.OK || !strings.Contains(r.Broken.Why, "kept") {
			t.Errorf("%s: got %+v, want it found", name, r)
		}
	}
	if r := verify(rows, kept, kept.Hash); !r.OK {
		t.Errorf("the record itself: got %+v", r.Broken)
	}
}

// TestARecordThatGrows is verified up to where it has been caught up with.
func TestARecordThatGrows(t *testing.T) {
	t.Parallel()
	rows, last := record(t, 2, 2, 2)
	shown := 2
	r, err := chain.Verify("", func(after int64) ([]flow.Audit, error) { return rows[after:shown], nil }, func() (flow.AuditHead, error) {
		shown = min(shown+2, 6)
		return flow.AuditHead{Seq: int64(shown), Hash: rows[shown-1].Hash}, nil
	})
	if err != nil || !r.OK || r.Head != last {
		t.Errorf("got %+v (%+v), %v; want whole up to %+v", r, r.Broken, err, last)
	}
	r, err = chain.Verify("", func(after int64) ([]flow.Audit, error) { return rows[min(after, 4):4], nil }, func() (flow.AuditHead, error) { return last, nil })
	if err != nil || r.OK || r.Broken.First != 5 {
		t.Errorf("cut: got %+v, %v; want a break at 5", r, err)
	}
}
