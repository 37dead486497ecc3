package sandbox

import (
	"context"
	"errors"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// errFull means that the engine had no memory left for what it was given or
// had to give back.
var errFull = errors.New("out of memory")

// instance is one engine with its memory, for one program. After the first
// failure every method does nothing and gives zero; err keeps that failure.
type instance struct {
	engine    *engine
	module    api.Module
	memory    memory
	functions map[string]api.Function
	err       error
}

// restore makes the memory what it was after the prelude.
func (in *instance) restore(ctx context.Context) {
	mem, image := in.module.Memory(), in.engine.image
	if have := mem.Size(); uint32(len(image)) > have {
		if _, ok := mem.Grow((uint32(len(image)) - have) / page); !ok {
			in.err = errFull
			return
		}
	}
	if !mem.Write(0, image) {
		in.err = errors.New("the engine's memory cannot be written")
		return
	}
	stack, ok := in.module.ExportedGlobal("__stack_pointer").(api.MutableGlobal)
	if !ok {
		in.err = errors.New("the engine has no stack pointer")
		return
	}
	stack.Set(in.engine.stack)
	in.call(ctx, "qjs_set_runtime_and_context", in.engine.qRuntime, in.engine.qContext)
}

// call calls an exported function of the engine.
func (in *instance) call(ctx context.Context, name string, args ...uint64) uint64 {
	if in.err != nil {
		return 0
	}
	f := in.functions[name]
	if f == nil {
		if f = in.module.ExportedFunction(name); f == nil {
			in.err = errors.New("the engine has no function " + name)
			return 0
		}
		in.functions[name] = f
	}
	results, err := f.Call(ctx, args...)
	if err != nil {
		in.err = err
		return 0
	}
	if len(results) == 0 {
		return 0
	}
	return results[0]
}

// put copies text into the engine, with a zero byte after it.
func (in *instance) put(ctx context.Context, text string) uint64 {
	at := in.call(ctx, "wasm_malloc", uint64(len(text)+1))
	if in.err != nil {
		return 0
	}
	mem := in.module.Memory()
	if at == 0 || !mem.WriteString(uint32(at), text) || !mem.WriteByte(uint32(at)+uint32(len(text)), 0) {
		in.err = errFull
		return 0
	}
	return at
}

// free gives back what put took.
func (in *instance) free(ctx context.Context, at uint64) { in.call(ctx, "wasm_free", at) }

// eval evaluates source as a script and gives a handle of its value.
func (in *instance) eval(ctx context.Context, source, name string) uint64 {
	text, file := in.put(ctx, source), in.put(ctx, name)
	value := in.handle(in.call(ctx, "qjs_eval", text, uint64(len(source)), file, 0))
	in.free(ctx, text)
	return value
}

// invoke calls a function of the engine by its handle.
func (in *instance) invoke(ctx context.Context, function uint64, args ...uint64) uint64 {
	at := in.call(ctx, "wasm_malloc", uint64(4*len(args)+4))
	if in.err == nil && at == 0 {
		in.err = errFull
	}
	for i, arg := range args {
		if in.err == nil && !in.module.Memory().WriteUint32Le(uint32(at)+uint32(4*i), uint32(arg)) {
			in.err = errFull
		}
	}
	return in.handle(in.call(ctx, "qjs_call", function, in.engine.undefined, uint64(len(args)), at))
}

// handle checks that the engine could make a handle.
func (in *instance) handle(value uint64) uint64 {
	if in.err == nil && value == 0 {
		in.err = errFull
	}
	return value
}

// newText makes a string of the language.
func (in *instance) newText(ctx context.Context, text string) uint64 {
	at := in.put(ctx, text)
	value := in.handle(in.call(ctx, "qjs_new_string", at, uint64(len(text))))
	in.free(ctx, at)
	return value
}

// bytes gives a string of the language as UTF-8 and where half a surrogate
// pair stands as the three bytes that it would have; false when it has more
// than limit bytes.
func (in *instance) bytes(ctx context.Context, value uint64, limit int) (string, bool) {
	length := in.call(ctx, "wasm_malloc", 4)
	if in.err == nil && length == 0 {
		in.err = errFull
	}
	at := in.handle(in.call(ctx, "qjs_get_string_len", value, length))
	if in.err != nil {
		return "", true
	}
	mem := in.module.Memory()
	n, _ := mem.ReadUint32Le(uint32(length))
	if int64(n) > int64(limit) {
		return "", false
	}
	text, ok := mem.Read(uint32(at), n)
	if !ok {
		in.err = errors.New("the engine's memory cannot be read")
	}
	return string(text), true
}

// text gives a string of the language when it is a short one of ours.
func (in *instance) text(ctx context.Context, value uint64) string {
	text, _ := in.bytes(ctx, value, 1<<20)
	return strings.ToValidUTF8(text, "\uFFFD")
}

// close ends the instance and gives its memory back.
func (in *instance) close() {
	// Nothing of ours is open within it: no failure is possible that matters
	// to the program that has just ended.
	_ = in.module.Close(context.Background())
	in.memory.release()
}
