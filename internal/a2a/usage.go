package a2a

import "strings"

// Usage is what an agent says it spent, in tokens. There is no standard place
// or spelling for it; a zero value means that nothing was reported.
type Usage struct {
	Input, Output, Total int64
}

// Count is what a ceiling counts: the total, else the sum.
func (u Usage) Count() int64 {
	if u.Total > 0 {
		return u.Total
	}
	return u.Input + u.Output
}

// larger keeps the larger of two reports: agents repeat the same count in
// several places.
func (u Usage) larger(v Usage) Usage {
	if v.Count() > u.Count() {
		return v
	}
	return u
}

// readUsage looks through metadata for a member called usage, with or without
// a prefix such as a URL.
func readUsage(metadata object) Usage {
	var best Usage
	for name, raw := range metadata {
		name = squeeze(name[strings.LastIndexAny(name, "/:.#")+1:])
		if !strings.HasSuffix(name, "usage") && !strings.HasSuffix(name, "usagemetadata") {
			continue
		}
		var u Usage
		for member, value := range asObject(raw) {
			n, ok := count(value)
			if !ok {
				continue
			}
			switch squeeze(member) {
			case "inputtokens", "prompttokens", "prompttokencount", "inputtokencount":
				u.Input = n
			case "outputtokens", "completiontokens", "candidatestokencount", "outputtokencount":
				u.Output = n
			case "totaltokens", "totaltokencount":
				u.Total = n
			}
		}
		best = best.larger(u)
	}
	return best
}

func squeeze(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}
