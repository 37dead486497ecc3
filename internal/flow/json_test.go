package flow_test

import (
	"strings"
	"testing"

	"github.com/longstop-dev/longstop/internal/flow"
)

func TestJSONSize(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][2]int{
		``:                 {0, 0},
		`1`:                {0, 0},
		`{}`:               {1, 0},
		`[[]]`:             {2, 0},
		`{"a":[{}],"b":1}`: {3, 1},
		`[1,[2,3],",",{}]`: {2, 4},
		`"[[[,,"`:          {0, 0},
		`["\\\"[[,"]`:      {1, 0},
		`"\\"[[,`:          {2, 1},
		`]]]{`:             {1, 0}, // no JSON, and no way to hide what follows
		`[][][]`:           {1, 0},
		`{"open":"[[[`:     {1, 0},
		strings.Repeat("[", 100_000) + strings.Repeat(",", 7): {100_000, 7},
	} {
		if depth, commas := flow.JSONSize([]byte(raw)); depth != want[0] || commas != want[1] {
			t.Errorf("%.30s: %d levels, %d commas, want %v", raw, depth, commas, want)
		}
	}
}
