// Evaluated once, before the memory of the engine is copied: every program
// starts from the state this file leaves behind. It gives the host its four
// doors. What they need is captured here, because a program may replace any
// global; it can only ever spoil its own result.
(() => {
  "use strict";
  const { stringify, parse } = JSON;
  const { apply } = Reflect;
  const { slice } = String.prototype;
  const source = Function.prototype.toString;
  const { setPrototypeOf } = Object;
  const { floor } = Math;
  const text = String;
  const kinds = [[Promise, "a promise: await it first"],
    [Map, "a Map: use Object.fromEntries(map)"],
    [Set, "a Set: use [...set]"]];
  const maxLines = 100, maxLine = 1024, maxText = 2000;

  // Without a prototype, no setter and no toJSON of the program's is found.
  const lines = setPrototypeOf([], null);
  let written = 0;

  const show = (v) => {
    if (typeof v === "string") return v;
    if (v instanceof Error) { try { return text(v); } catch { return "an error that cannot be shown"; } }
    try {
      const out = stringify(v);
      if (out !== undefined) return out;
    } catch {}
    try { return text(v); } catch { return "a value that cannot be shown"; }
  };
  const write = (...parts) => {
    written++;
    if (lines.length >= maxLines) return;
    let line = "";
    for (let i = 0; i < parts.length && line.length < maxLine; i++) {
      line += (i > 0 ? " " : "") + show(parts[i]);
    }
    lines[lines.length] = apply(slice, line, [0, maxLine]);
  };
  globalThis.console = { log: write, info: write, warn: write, error: write, debug: write, trace: write };

  const refuse = (key, what) => {
    throw new TypeError((key === "" ? "the result" : "member " + stringify(key) + " of the result") + " is " + what);
  };
  // plain refuses what JSON.stringify would drop or empty without a word.
  const plain = (key, v) => {
    switch (typeof v) {
      case "function": return refuse(key, "a function");
      case "symbol": return refuse(key, "a symbol");
      case "bigint": return refuse(key, "a BigInt: use Number(x) or String(x)");
      case "object":
        for (let i = 0; i < kinds.length; i++) if (v instanceof kinds[i][0]) refuse(key, kinds[i][1]);
    }
    return v;
  };

  // The engine's own generator would go on from the copied state: the same
  // numbers in every run, and ids made of them would collide.
  let a = 1, b = 2, c = 3, d = 4;
  Math.random = function random() {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return ((t >>> 0) * 2097152 + (d >>> 0) % 2097152) / 9007199254740992;
  };

  return {
    // read takes the arguments as the text of a JSON array.
    read: (json) => parse(json),
    // start calls the program's function. length is that of its whole text:
    // a shorter function means that the text closed the one it was put into.
    start: (program, args, length, s1, s2, s3, s4) => {
      if (typeof program !== "function" || apply(source, program, []).length !== length) {
        throw new SyntaxError("the code closes the function that it is the body of: a } too many");
      }
      a = s1 | 0; b = s2 | 0; c = s3 | 0; d = s4 | 0;
      return apply(program, undefined, args);
    },
    // finish writes the result as JSON.
    finish: (v) => (v === undefined ? "null" : stringify(v, plain) ?? "null"),
    // describe tells what was thrown, as a JSON array of three strings.
    describe: (e) => {
      const told = setPrototypeOf(["", "", ""], null);
      const cut = (v) => (v === undefined ? "" : apply(slice, show(v), [0, maxText]));
      try {
        if (e instanceof Error) {
          told[0] = cut(e.name);
          told[1] = cut(e.message);
          told[2] = cut(e.stack);
        } else {
          told[1] = cut(e);
        }
      } catch {
        told[1] = "an error that cannot be shown";
      }
      return stringify(told);
    },
    // console gives the lines kept and the number written, as JSON.
    console: () => {
      const out = setPrototypeOf([written, lines], null);
      return stringify(out);
    },
  };
})()
