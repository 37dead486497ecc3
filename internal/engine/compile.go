package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/longstop-dev/longstop/internal/definition"
	"github.com/longstop-dev/longstop/internal/expr"
	"github.com/longstop-dev/longstop/internal/flow"
)

// maxCompiled bounds how many definitions stay compiled.
const maxCompiled = 512

// compiled is a definition made ready to run.
type compiled struct {
	def    *flow.Definition
	steps  []*node // by index
	output *expr.Template
	input  *definition.Schema
	reads  reads

	concurrent bool // some of its steps may run at the same time
}

// node is a step made ready to run.
type node struct {
	*flow.Step
	kind     flow.StepType
	config   *expr.Template  // config without the lazy members
	plain    bool            // it holds no template
	whole    json.RawMessage // then: all of the config
	lazy     json.RawMessage // the lazy members as an object, or nil
	contract *definition.Schema
	lanes    []lane // where it stands, from the outside in
}

// lane is one of the nested lists of a step that run at the same time.
type lane struct{ step, list int }

// sees reports whether a step sees the output of another one that is done: not
// if the two stand in lists that run at the same time.
func (n *node) sees(other *node) bool {
	for i := range min(len(n.lanes), len(other.lanes)) {
		if a, b := n.lanes[i], other.lanes[i]; a != b {
			return a.step != b.step
		}
	}
	return true
}

// reads says which parts of the scope a definition looks at, so that nobody
// decodes what nobody reads.
type reads struct{ input, steps, secrets bool }

// note looks for the names in a config as it is written, templates and CEL
// alike: a name that only looks like one costs a decoding and does no harm.
func (r *reads) note(config json.RawMessage) {
	r.input = r.input || bytes.Contains(config, []byte("input"))
	r.steps = r.steps || bytes.Contains(config, []byte("steps"))
	r.secrets = r.secrets || bytes.Contains(config, []byte("secrets"))
}

// definitions compiles versions once and keeps them.
type definitions struct {
	versions Versions
	types    map[string]flow.StepType
	list     []flow.StepType
	parser   *definition.Parser

	mu   sync.Mutex
	have map[string]*compiled
}

func newDefinitions(v Versions, types []flow.StepType) *definitions {
	d := &definitions{versions: v, types: map[string]flow.StepType{}, list: types, parser: definition.NewParser(types), have: map[string]*compiled{}}
	for _, t := range types {
		d.types[t.Name] = t
	}
	return d
}

// get gives the version with this id, compiled. Versions are immutable, and
// an id names one workspace's version: the caller has read it from a row.
func (d *definitions) get(ctx context.Context, id string) (*compiled, error) {
	d.mu.Lock()
	c, ok := d.have[id]
	d.mu.Unlock()
	if ok {
		return c, nil
	}
	v, err := d.versions.Version(ctx, "", id)
	if flow.CodeOf(err) == flow.CodeNotFound { // a run or a workflow names it
		return nil, unreadable(id, err)
	}
	if err != nil {
		return nil, err
	}
	var def flow.Definition
	if err := json.Unmarshal(v.Definition, &def); err != nil {
		return nil, unreadable(id, err)
	}
	if c, err = d.compile(&def); err != nil {
		return nil, unreadable(id, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.have) >= maxCompiled {
		clear(d.have)
	}
	d.have[id] = c
	return c, nil
}

// unreadable is of a version that was checked when it was stored, and cannot
// be read now.
func unreadable(id string, err error) error {
	return flow.Errorf(flow.CodeUnavailable, "workflow version %s cannot be read: its row is damaged or gone", id).
		Right("put the row back from a backup, or publish the workflow again for new runs").Because(errors.Join(flow.ErrUnreadable, err))
}

func (d *definitions) compile(def *flow.Definition) (*compiled, error) {
	c := &compiled{def: def}
	var err error
	if c.input, err = schema(def.Input); err != nil {
		return nil, err
	}
	if len(def.Output) > 0 {
		if c.output, err = expr.Compile(def.Output); err != nil {
			return nil, err
		}
		c.reads.note(def.Output)
	}
	return c, d.nodes(c, def.Steps, nil)
}

// nodes compiles a list of steps and all that is nested in them.
func (d *definitions) nodes(c *compiled, steps []flow.Step, lanes []lane) error {
	for i := range steps {
		n, err := d.node(&steps[i])
		if err != nil {
			return err
		}
		if !n.plain || n.lazy != nil {
			c.reads.note(n.Config)
		}
		n.lanes = lanes
		c.steps = append(c.steps, n)
		c.concurrent = c.concurrent || n.kind.Concurrent
		for j, b := range n.Nested {
			within := lanes
			if n.kind.Concurrent {
				within = append(slices.Clone(lanes), lane{n.Index, j})
			}
			if err := d.nodes(c, b.Steps, within); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *definitions) node(s *flow.Step) (*node, error) {
	n := &node{Step: s, kind: d.types[s.Type]}
	eager, lazy, err := split(s.Config, n.kind.Lazy)
	if err != nil {
		return nil, err
	}
	n.lazy, n.whole = lazy, glue(eager, lazy)
	if n.config, err = expr.Compile(eager); err != nil {
		return nil, err
	}
	n.plain = len(n.config.Filled()) == 0
	n.contract, err = schema(s.Output)
	return n, err
}

// split takes the lazy members out of a config.
func split(config json.RawMessage, lazy []string) (eager, rest json.RawMessage, err error) {
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}
	if len(lazy) == 0 {
		return config, nil, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(config, &all); err != nil {
		return nil, nil, flow.Errorf(flow.CodeInternal, "a step's config is not an object").Because(err)
	}
	taken := map[string]json.RawMessage{}
	for _, name := range lazy {
		if v, ok := all[name]; ok {
			taken[name] = v
			delete(all, name)
		}
	}
	if eager, err = encode(all); err != nil {
		return nil, nil, err
	}
	rest, err = encode(taken)
	return eager, rest, err
}

func schema(raw json.RawMessage) (*definition.Schema, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	return definition.CompileSchema(raw)
}
