package sandbox

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// quickjs is QuickJS-ng as WebAssembly; see quickjs.LICENSE.
//
//go:embed quickjs.wasm
var quickjs []byte

//go:embed prelude.js
var prelude string

const (
	page      = 64 << 10  // of WebAssembly
	stackSize = 256 << 10 // bytes the interpreter may recurse into
	reserve   = 4 << 20   // bytes of Memory the program's heap does not get: the engine's own, and room to tell of an exhausted heap
)

// engine is QuickJS compiled to machine code, with a copy of its memory as it
// was after the prelude.
type engine struct {
	options Options
	runtime wazero.Runtime
	cache   wazero.CompilationCache // nil without a folder
	module  wazero.CompiledModule

	image     []byte // the memory
	stack     uint64 // the stack pointer
	qRuntime  uint64 // pointers into the image
	qContext  uint64
	undefined uint64
	doors     doors
}

// doors are the functions that the prelude gives, as handles of the engine.
type doors struct{ read, start, finish, describe, console uint64 }

// newEngine compiles the engine, with the cache when there is one. A cache
// that cannot be read is passed over: it only saves time.
func newEngine(o Options) (*engine, error) {
	if o.CacheDir != "" {
		if err := private(o.CacheDir); err != nil {
			return nil, broken("the cache folder cannot be used", err)
		}
		if cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir); err == nil {
			if e, err := compile(o, cache); err == nil {
				return e, nil
			}
		}
	}
	e, err := compile(o, nil)
	if err != nil {
		return nil, broken("the engine could not be started", err)
	}
	return e, nil
}

// private makes the folder, or checks that nobody else may write to it: what
// lies there is run as machine code.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode()&(fs.ModePerm&0o022) != 0 {
		return fmt.Errorf("%s may be written to by others (mode %v): it must be 0700", dir, info.Mode())
	}
	return nil
}

func compile(o Options, cache wazero.CompilationCache) (e *engine, err error) {
	ctx := context.Background()
	config := wazero.NewRuntimeConfigCompiler().
		WithCloseOnContextDone(true).
		WithMemoryLimitPages(uint32(o.Memory / page))
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	e = &engine{options: o, cache: cache, runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close(ctx))
		}
	}()
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, e.runtime); err != nil {
		return nil, err
	}
	if e.module, err = e.runtime.CompileModule(ctx, quickjs); err != nil {
		return nil, err
	}
	if err = e.stubs(ctx); err != nil {
		return nil, err
	}
	return e, e.takeImage(ctx)
}

// stubs gives the engine the functions it wants of its host: all but one do
// nothing and answer 0, which means no function, no module and UTC. The one
// is asked every few thousand steps whether the program must stop.
func (e *engine) stubs(ctx context.Context) error {
	host := e.runtime.NewHostModuleBuilder("env")
	for _, f := range e.module.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != "env" {
			continue
		}
		results := len(f.ResultTypes())
		answer := func(_ context.Context, stack []uint64) { clear(stack[:results]) }
		if name == "host_interrupt" {
			answer = interrupt
		}
		host.NewFunctionBuilder().
			WithGoFunction(api.GoFunc(answer), f.ParamTypes(), f.ResultTypes()).
			Export(name)
	}
	_, err := host.Instantiate(ctx)
	return err
}

// takeImage starts the engine once, evaluates the prelude and copies the
// memory.
func (e *engine) takeImage(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	in, err := e.instantiate(ctx, "_initialize")
	if err != nil {
		return err
	}
	defer in.close()
	in.call(ctx, "qjs_init")
	in.call(ctx, "qjs_set_memory_limit", uint64(e.options.Memory-reserve))
	in.call(ctx, "qjs_set_max_stack_size", stackSize)
	in.call(ctx, "qjs_set_interrupt_handler", 1)
	made := in.eval(ctx, prelude, "prelude.js")
	if in.call(ctx, "qjs_is_exception", made) != 0 {
		return errors.New("the prelude threw: " + in.text(ctx, in.call(ctx, "qjs_get_exception")))
	}
	e.undefined = in.call(ctx, "qjs_get_undefined")
	for name, door := range map[string]*uint64{
		"read": &e.doors.read, "start": &e.doors.start, "finish": &e.doors.finish,
		"describe": &e.doors.describe, "console": &e.doors.console,
	} {
		*door = in.call(ctx, "qjs_get_prop_string", made, in.put(ctx, name))
	}
	e.qRuntime = in.call(ctx, "qjs_get_runtime_ptr")
	e.qContext = in.call(ctx, "qjs_get_context_ptr")
	if in.err != nil {
		return in.err
	}
	e.stack = in.module.ExportedGlobal("__stack_pointer").Get()
	bytes, ok := in.module.Memory().Read(0, in.module.Memory().Size())
	if !ok {
		return errors.New("the engine's memory cannot be read")
	}
	e.image = append([]byte(nil), bytes...)
	return nil
}

// instantiate makes an engine with memory of its own.
func (e *engine) instantiate(ctx context.Context, start ...string) (*instance, error) {
	mem := allocate(e.options.Memory)
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(
		func(_, _ uint64) experimental.LinearMemory { return mem }))
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions(start...).
		WithSysWalltime().WithSysNanotime().WithRandSource(rand.Reader)
	module, err := e.runtime.InstantiateModule(ctx, e.module, config)
	if err != nil {
		mem.release()
		return nil, err
	}
	return &instance{engine: e, module: module, memory: mem, functions: map[string]api.Function{}}, nil
}

func (e *engine) close(ctx context.Context) error {
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	return err
}

// broken is a failure of ours.
func broken(message string, err error) *Error {
	return &Error{Kind: KindInternal, Message: message, Err: err}
}
