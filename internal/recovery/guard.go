package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/longstop-dev/longstop/internal/flow"
)

// mend is a retry that has passed the guard.
//
// mods is what the engine lays over the step's resolved config as an RFC 7396
// merge patch. One member of it is reserved and never reaches the config:
// "timeout", in milliseconds, bounds each further attempt. mods may hold
// [secret:NAME] where the secret may go.
type mend struct {
	mods    json.RawMessage
	dropped []string // JSON pointers into the config that the new origin loses
	notes   []string
	before  any // the config, masked, where it changes
	after   any
}

// bench is what modifications are checked against.
type bench struct {
	failure  flow.Failure
	settings flow.RecoverySettings
	limits   flow.Limits
	mendable []string // fields of config that may change
	check    func(ctx context.Context, url string) error
	mask     func(json.RawMessage) json.RawMessage
}

// modifications checks a retry's modifications and makes a mend of them.
// Anything that is not expressly allowed is refused by name.
func (b bench) modifications(ctx context.Context, raw json.RawMessage) (mend, *Rejection) {
	if len(raw) > maxModBytes {
		return mend{}, reject("modifications", fmt.Sprintf("%d bytes", len(raw)), fmt.Sprintf("at most %d", maxModBytes))
	}
	if depth, _ := flow.JSONSize(raw); depth > maxModDepth {
		return mend{}, reject("modifications", fmt.Sprintf("nested more than %d levels deep", maxModDepth), "")
	}
	if r := find(decoded(raw), polluting); r != nil {
		return mend{}, r.under("modifications")
	}
	all, r := members(raw)
	if r != nil {
		return mend{}, r.under("modifications")
	}
	allowed := []string{"httpRequest", "connectorCall", "timeout", "headers", "body"}
	for _, key := range sortedKeys(all) {
		if !slices.Contains(allowed, key) {
			return mend{}, reject("modifications."+oneLine(key, 60), "may not be changed", "only "+strings.Join(allowed, ", "))
		}
	}
	if all["connectorCall"] != nil {
		return mend{}, reject("modifications.connectorCall", "is for connector steps, and this is "+b.failure.Step.Type, "")
	}
	request, r := b.request(all)
	if r != nil {
		return mend{}, r.under("modifications")
	}
	timeout, r := b.timeout(all["timeout"])
	if r != nil {
		return mend{}, r.under("modifications.timeout")
	}
	return b.finish(ctx, request, timeout)
}

// request gathers the changes of the request, the short forms included.
func (b bench) request(all map[string]json.RawMessage) (map[string]any, *Rejection) {
	out := map[string]any{}
	if raw := all["httpRequest"]; raw != nil {
		fields, r := members(raw)
		if r != nil {
			return nil, r.under("httpRequest")
		}
		for _, key := range sortedKeys(fields) {
			if !slices.Contains(b.mendable, key) {
				return nil, reject("httpRequest."+oneLine(key, 60), "may not be changed in a step of type "+b.failure.Step.Type, b.fields())
			}
			out[key] = decoded(fields[key])
		}
	}
	for _, short := range []string{"headers", "body"} {
		raw := all[short]
		if raw == nil {
			continue
		}
		if _, both := out[short]; both {
			return nil, reject(short, "is given twice: it is short for httpRequest."+short, "one of the two")
		}
		if !slices.Contains(b.mendable, short) {
			return nil, reject(short, "may not be changed in a step of type "+b.failure.Step.Type, b.fields())
		}
		out[short] = decoded(raw)
	}
	for _, check := range []func(map[string]any) *Rejection{checkURL, checkMethod, checkHeaders, checkQuery} {
		if r := check(out); r != nil {
			return nil, r.under("httpRequest")
		}
	}
	return out, nil
}

func (b bench) fields() string {
	if len(b.mendable) == 0 {
		return "only timeout"
	}
	return "only " + strings.Join(b.mendable, ", ")
}

// timeout reads milliseconds within the workspace's cap; 0 is none.
func (b bench) timeout(raw json.RawMessage) (int64, *Rejection) {
	if raw == nil {
		return 0, nil
	}
	fix := fmt.Sprintf("milliseconds from 1 to %d, the limit of limits.step_timeout_ms", b.limits.StepTimeout.Milliseconds())
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return 0, reject("", "must be an integer, got "+oneLine(string(raw), 40), fix)
	}
	if n < 1 || n > b.limits.StepTimeout.Milliseconds() {
		return 0, reject("", fmt.Sprintf("%d is out of range", n), fix)
	}
	return n, nil
}

// finish decides where the request would go and what may go along.
func (b bench) finish(ctx context.Context, request map[string]any, timeout int64) (mend, *Rejection) {
	m := mend{}
	sameSpelling(request, b.failure.Config)
	if to, ok := request["url"].(string); ok {
		if err := b.check(ctx, to); err != nil {
			return m, reject("modifications.httpRequest.url", "may not be called: "+oneLine(err.Error(), 200), "")
		}
	}
	way, r := b.route(request)
	if r != nil {
		return m, r
	}
	if way.foreign {
		if r := keepSecrets(request, way); r != nil {
			return m, r.under("modifications.httpRequest")
		}
	}
	if r := strangers(request, b.secretsOf()); r != nil {
		return m, r.under("modifications.httpRequest")
	}
	if way.moves {
		m.dropped = b.filled()
		if lost := lostOf(m.dropped, request); len(lost) > 0 {
			m.notes = append(m.notes, "dropped for the new origin "+way.to+", because templates filled them in: "+strings.Join(lost, ", "))
		}
		withdraw(request, b.failure.Instance.Progress.Mods)
	}
	m.before, m.after = b.diff(request, m.dropped)
	if timeout > 0 {
		request["timeout"] = json.Number(strconv.FormatInt(timeout, 10))
		m.notes = append(m.notes, "time-out of an attempt: "+(time.Duration(timeout)*time.Millisecond).String())
	}
	m.mods = encoded(request)
	return m, nil
}

// diff gives the config as it is and as it becomes, masked; nothing if it
// stays.
func (b bench) diff(request map[string]any, dropped []string) (before, after any) {
	config := b.failure.Config
	if len(config) == 0 || len(request) == 0 && len(dropped) == 0 {
		return nil, nil
	}
	changed := config
	for _, pointer := range dropped {
		changed = without(changed, pointer)
	}
	changed, err := jsonpatch.MergePatch(changed, encoded(request))
	if err != nil {
		return nil, nil
	}
	return b.mask(config), b.mask(changed)
}

// without gives JSON without what the pointer names, if it is there.
func without(raw json.RawMessage, pointer string) json.RawMessage {
	patch, err := jsonpatch.DecodePatch([]byte(`[{"op":"remove","path":` + string(encoded(pointer)) + `}]`))
	if err != nil {
		return raw
	}
	out, err := patch.Apply(raw)
	if err != nil {
		return raw
	}
	return out
}
