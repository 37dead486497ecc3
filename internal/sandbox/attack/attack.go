// Package attack holds programs that attack a sandbox: its tests run them, and
// so does the bench.
package attack

import (
	"slices"
	"strings"

	"github.com/longstop-dev/longstop/internal/sandbox"
)

// Program is code that tries to take more than it may have.
type Program struct {
	Name  string
	Code  string
	Kinds []sandbox.Kind // any of which may stop it; none: it gives Value
	Value string         // JSON; "" for any
}

// Suite gives every attack. Those that a timeout may stop run until there is
// one; the others end by themselves, however busy the machine is.
func Suite() []Program {
	return slices.Concat(timeouts(), memories(), depths(), escapes(), []Program{
		{"pollution", Pollution + "return 1", nil, ""},
		{"pollution thrown", Pollution + "throw 1", []sandbox.Kind{sandbox.KindThrown}, ""},
	})
}

func timeouts() []Program {
	kinds := []sandbox.Kind{sandbox.KindTimeout}
	return []Program{
		{"infinite loop", `for(;;){}`, kinds, ""},
		{"infinite async loop", `for(;;) await null`, kinds, ""},
		{"infinite async generator", `async function* g(){ for(;;) yield 1 } for await (const x of g()) {}`, kinds, ""},
		{"catch loop", `for(;;){ try { for(;;){} } catch {} }`, kinds, ""},
		{"finally loop", `for(;;){ try { for(;;){} } finally { continue } }`, kinds, ""},
		{"async catch loop", `for(;;){ try { await (async () => { for(;;){} })() } catch {} }`, kinds, ""},
		{"microtasks without end", `const f = () => queueMicrotask(f); f(); await new Promise(() => {})`, kinds, ""},
		{"regular expression bomb", `return /(a+)+$/.test('a'.repeat(40)+'!')`, kinds, ""},
		{"regular expression bomb in a look-ahead", `return /(?=(a+)+$)b/.test('a'.repeat(36)+'!')`, kinds, ""},
		{"sort without end", `const a = Array.from({length: 1e5}, (_, i) => i % 7); for(;;) a.sort(() => Math.random() - 0.5)`, kinds, ""},
		{"long work within the engine", `return 'x'.repeat(1e6).split('').indexOf(String(new Array(1e6).lastIndexOf(1))) + new Array(2e9).indexOf(1)`, append(kinds, sandbox.KindMemory), ""},
		{"toJSON", `return {toJSON(){ for(;;){} }}`, kinds, ""},
		{"getter", `return {get x(){ for(;;){} }}`, kinds, ""},
		{"then", `return {then(){ for(;;){} }}`, kinds, ""},
		{"thrown proxy", `throw new Proxy({}, {getPrototypeOf(){ for(;;){} }})`, kinds, ""},
		{"thrown error with a getter", `const e = new Error(); Object.defineProperty(e, 'message', {get(){ for(;;){} }}); throw e`, kinds, ""},
		{"instanceof replaced", `Object.defineProperty(Map, Symbol.hasInstance, {value(){ for(;;){} }}); return {}`, kinds, ""},
		{"stack trace", `Error.prepareStackTrace = () => { for(;;){} }; null.x`, append(kinds, sandbox.KindThrown), ""},
		{"proxy without end", `return new Proxy({}, {ownKeys(){ for(;;){} }})`, kinds, ""},
		{"console", `console.log({toString(){ for(;;){} }, toJSON(){ for(;;){} }})`, kinds, ""},
		{"reading the console", `Array.prototype.toJSON = () => { for(;;){} }; console.log('x'); return 1`, nil, "1"},
		{"BigInt", `let b = 3n; for(;;) b = b * b`, []sandbox.Kind{sandbox.KindTimeout, sandbox.KindMemory, sandbox.KindThrown}, ""},
	}
}

func memories() []Program {
	kinds := []sandbox.Kind{sandbox.KindMemory, sandbox.KindTimeout}
	return []Program{
		{"push", `const a = []; for(;;) a.push(new Array(1e5).fill(7))`, kinds, ""},
		{"push of one buffer", `const a = []; for(;;) a.push(new Uint8Array(1e7).fill(1))`, []sandbox.Kind{sandbox.KindMemory}, ""},
		{"push in a catch loop", `const a = []; for(;;){ try { for(;;) a.push(new Uint8Array(1e6)) } catch {} }`, kinds, ""},
		{"string doubling", `let s = 'x'; for(;;) s += s`, append(kinds, sandbox.KindThrown), ""},
		{"flat string doubling", `let s = 'x'; for(;;) { s += s; s.charCodeAt(5) }`, append(kinds, sandbox.KindThrown), ""},
		{"strings kept", `const a = []; for(;;) a.push('x'.repeat(1e6) + a.length)`, kinds, ""},
		{"join of a huge array", `return new Array(2e9).join('ab').length`, append(kinds, sandbox.KindThrown), ""},
		{"filling a huge array", `return new Array(3e8).fill(0).length`, kinds, ""},
		{"padStart", `return 'x'.padStart(2 ** 30 - 2).length`, append(kinds, sandbox.KindThrown), ""},
		{"one huge buffer", `return new ArrayBuffer(2 ** 31).byteLength`, append(kinds, sandbox.KindThrown), ""},
		{"promises kept", `const a = []; for(;;) a.push(new Promise(() => {}))`, kinds, ""},
		{"closures kept", `let f = null; for(;;) { const g = f; f = () => g }`, kinds, ""},
	}
}

func depths() []Program {
	thrown, output := []sandbox.Kind{sandbox.KindThrown}, []sandbox.Kind{sandbox.KindOutput, sandbox.KindTimeout}
	return []Program{
		{"recursion", `function f(){ return f() + 1 } return f()`, thrown, ""},
		{"recursion through the engine", `const o = {}; o.toString = () => '' + o; return '' + o`, thrown, ""},
		{"recursion through sort", `const f = () => [2, 1].sort(f); f()`, thrown, ""},
		{"recursion through a proxy", `let p = {}; for (let i = 0; i < 20000; i++) p = new Proxy(p, {}); return p.x ?? 1`, append(thrown, sandbox.KindTimeout), ""},
		{"recursion through a regular expression", `return 'a'.repeat(3e4).match(new RegExp('('.repeat(5000) + 'a' + ')'.repeat(5000)))`, []sandbox.Kind{sandbox.KindThrown, sandbox.KindSyntax, sandbox.KindTimeout}, ""},
		{"recursion in a catch", `const f = () => { try { f() } catch { f() } }; f()`, append(thrown, sandbox.KindTimeout), ""},
		{"parsing JSON nested deep", `return JSON.parse('['.repeat(2e5) + ']'.repeat(2e5))`, append(thrown, sandbox.KindSyntax), ""},
		{"output nested 100,000 deep", `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a`, output, ""},
		{"output nested 501 deep", `let a = []; for (let i = 0; i < 500; i++) a = [a]; return a`, output[:1], ""},
		{"output too large", `return 'x'.repeat(70000)`, output[:1], ""},
		{"output without end by toJSON", `return {toJSON(){ return [this] }}`, append(output, sandbox.KindMemory), ""},
		{"output without end by a proxy", `const p = new Proxy({}, {ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({enumerable: true, configurable: true}), get: (_, k) => k === 'a' ? {p: {...p}} : undefined}); return p`, append(output, sandbox.KindThrown, sandbox.KindMemory), ""},
		{"code of 1 MB", "return 1" + strings.Repeat(" ", 1<<20), nil, "1"},
		{"code of 1 MB of brackets", "return " + strings.Repeat("(", 1<<20), []sandbox.Kind{sandbox.KindSyntax, sandbox.KindThrown, sandbox.KindTimeout, sandbox.KindMemory}, ""},
		{"code of 1 MB of sums", "return 1" + strings.Repeat("+1", 1<<19), []sandbox.Kind{sandbox.KindSyntax, sandbox.KindThrown, sandbox.KindTimeout, sandbox.KindMemory}, ""},
		{"code of 40 MB", "return 1" + strings.Repeat(" ", 40<<20), []sandbox.Kind{sandbox.KindMemory}, ""},
	}
}

func escapes() []Program {
	thrown, syntax := []sandbox.Kind{sandbox.KindThrown}, []sandbox.Kind{sandbox.KindSyntax}
	return []Program{
		{"process", `return process.env`, thrown, ""},
		{"require", `return require('fs')`, thrown, ""},
		{"fetch", `return await fetch('http://127.0.0.1/')`, thrown, ""},
		{"WebAssembly", `return new WebAssembly.Module()`, thrown, ""},
		{"import of os", `return await import('os')`, thrown, ""},
		{"import of std", `return await import('qjs:std')`, thrown, ""},
		{"import of a file", `return await import('/etc/passwd')`, thrown, ""},
		{"import of a URL", `return await import('https://example.com/x.js')`, thrown, ""},
		{"import statement", `import os from 'os'`, syntax, ""},
		{"setTimeout", `setTimeout(() => {}, 1)`, thrown, ""},
		{"names of hosts", `return ['std','os','bjson','print','scriptArgs','Worker','Deno','Bun','process','require','module','fetch','XMLHttpRequest','WebSocket','WebAssembly','setTimeout','gc','load'].filter(n => n in globalThis)`, nil, "[]"},
		{"functions seen through the stack", `function f(){ return f.caller } return f()`, append(thrown, sandbox.KindOutput), ""},
		{"constructor of a function", `return (async () => {}).constructor('return typeof process')()`, nil, `"undefined"`},
		{"waiting for shared memory", `Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)`, thrown, ""},
		{"closing the wrapper", `}); (async function () { return 1`, syntax, ""},
		{"closing the wrapper and forging it", `}), (globalThis.x = 1, async function () { return 1`, syntax, ""},
		{"closing the wrapper in an arrow", `}, async () => { return 1`, syntax, ""},
		{"a brace too many", `return 1 }`, syntax, ""},
		{"a comment left open", `return 1 /*`, syntax, ""},
		{"a template left open", "return `", syntax, ""},
		{"a last line of comment", `return 1 //`, nil, "1"},
		{"a promise that never settles", `await new Promise(() => {})`, thrown, ""},
		{"proxy as a result", `return new Proxy({a: 1}, {})`, nil, `{"a":1}`},
		{"revoked proxy as a result", `const p = Proxy.revocable({}, {}); p.revoke(); return p.proxy`, append(thrown, sandbox.KindOutput), ""},
		{"text of every kind", `return ['\0', '\ud800', '\udc00x', '\u2028', '😀', '\ufeff', '\u202e', '</script>', {'\ud800': 1, '__proto__': 2}]`, nil,
			`["\u0000","\ud800","\udc00x","` + "\u2028" + `","😀","` + "\ufeff" + `","` + "\u202e" + `","</script>",{"\ud800":1}]`},
		{"code of every kind", "const \U00020000 = '\u202e'; return \U00020000 + \"\u2028\" + '\xff\x00'", nil, `"` + "\u202e\u2028\ufffd" + `\u0000"`},
		{"thrown nothing", `throw undefined`, thrown, ""},
		{"thrown symbol", `throw Symbol('x')`, thrown, ""},
		{"thrown text without end", `throw new Error('x'.repeat(1e6))`, thrown, ""},
		{"thrown with everything replaced", `String.prototype.slice = JSON.stringify = Object.setPrototypeOf = Function.prototype.toString = null; Promise.prototype.then = Array.prototype[Symbol.iterator] = null; throw new Error('x')`, thrown, ""},
	}
}

// Pollution is what one program leaves for the next.
const Pollution = `
Object.prototype.hacked = 'yes';
Object.prototype.toJSON = () => 'hacked';
Array.prototype.map = Array.prototype.toJSON = () => 'hacked';
Promise.prototype.then = Promise.resolve = function () { return this };
JSON.stringify = JSON.parse = () => '"hacked"';
Function.prototype.call = Function.prototype.apply = Function.prototype.toString = () => 'hacked';
Reflect.apply = String.prototype.slice = Object.setPrototypeOf = () => 'hacked';
console.log = () => {}; Math.random = () => 4;
Object.defineProperty(Array.prototype, '0', {set(v) { globalThis.leak = v }});
globalThis.leak = globalThis.input = 1; delete globalThis.console; delete globalThis.Map;
Object.freeze(globalThis);
`
