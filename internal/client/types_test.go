package client_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longstop-dev/longstop/internal/access"
	"github.com/longstop-dev/longstop/internal/client"
	"github.com/longstop-dev/longstop/internal/engine"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/recovery"
)

// shape writes down the JSON of a type: names, options and kinds, all the way
// down. Types of the same shape read and write the same JSON.
func shape(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t.Kind() == reflect.Pointer:
		return "?" + shape(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "raw"
	case t.Kind() == reflect.Slice:
		return "[" + shape(t.Elem()) + "]"
	case t.Kind() == reflect.Map:
		return "{" + shape(t.Key()) + ":" + shape(t.Elem()) + "}"
	case t.Kind() == reflect.Struct:
		return "(" + strings.Join(members(t), " ") + ")"
	case strings.HasPrefix(t.PkgPath(), "github.com/longstop-dev/longstop/internal/flow"):
		return t.Name()
	}
	return t.Kind().String()
}

func members(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" {
			out = append(out, members(f.Type)...)
			continue
		}
		if tag != "-" && f.IsExported() {
			out = append(out, fmt.Sprintf("%s %s;", tag, shape(f.Type)))
		}
	}
	return out
}

func TestTypesAreTheServers(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]reflect.Type{
		"Person":     {reflect.TypeFor[client.Person](), reflect.TypeFor[access.PersonView]()},
		"Workspace":  {reflect.TypeFor[client.Workspace](), reflect.TypeFor[access.WorkspaceView]()},
		"Workflow":   {reflect.TypeFor[client.Workflow](), reflect.TypeFor[engine.WorkflowView]()},
		"Validation": {reflect.TypeFor[client.Validation](), reflect.TypeFor[engine.ValidateOut]()},
		"Run":        {reflect.TypeFor[client.Run](), reflect.TypeFor[engine.RunView]()},
		"Step":       {reflect.TypeFor[client.Step](), reflect.TypeFor[engine.StepView]()},
		"StartRun":   {reflect.TypeFor[client.StartRun](), reflect.TypeOf(engine.StartRunIn{}.Body)},
		"Compare":    {reflect.TypeFor[client.Comparison](), reflect.TypeFor[engine.CompareView]()},
		"Rerun":      {reflect.TypeFor[client.Rerun](), reflect.TypeOf(engine.RerunIn{}.Body)},
		"List":       {reflect.TypeFor[client.List[flow.Event]](), reflect.TypeFor[engine.List[flow.Event]]()},
		"Agent":      {reflect.TypeFor[client.Agent](), reflect.TypeFor[recovery.AgentSpec]()},
		"Trial":      {reflect.TypeFor[client.Trial](), reflect.TypeFor[recovery.TrialResult]()},
		"Replay":     {reflect.TypeFor[client.Replay](), reflect.TypeFor[recovery.ReplayView]()},
		"Contract":   {reflect.TypeFor[client.Contract](), reflect.TypeFor[recovery.Contract]()},
		"Observed":   {reflect.TypeFor[client.Observed](), reflect.TypeFor[recovery.ObservedView]()},
		"Setting":    {reflect.TypeFor[client.Setting](), reflect.TypeFor[access.SettingView]()},
		"Server":     {reflect.TypeFor[client.Server](), reflect.TypeFor[access.ServerView]()},
		"ServerSpec": {reflect.TypeFor[client.ServerSpec](), reflect.TypeFor[access.ServerSpec]()},
		"Secret":     {reflect.TypeFor[client.Secret](), reflect.TypeFor[access.SecretView]()},
		"Key":        {reflect.TypeFor[client.Key](), reflect.TypeFor[access.KeyView]()},
		"Pending":    {reflect.TypeFor[client.Pending](), reflect.TypeFor[engine.PendingItem]()},
		"Submitted":  {reflect.TypeFor[client.Submitted](), reflect.TypeFor[engine.SubmitOut]()},
		"Me":         {reflect.TypeFor[client.Me](), reflect.TypeFor[access.MeView]()},
	} {
		if got, want := shape(pair[0]), shape(pair[1]); got != want {
			t.Errorf("client.%s:\n got %s\nwant %s (%v)", name, got, want, pair[1])
		}
	}
}
