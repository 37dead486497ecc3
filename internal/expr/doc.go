// Package expr evaluates what a workflow's author writes into configs and
// outputs: templates and CEL conditions, over one [Scope].
//
// # Templates
//
//	{{ input.user.name }}            a member
//	{{ steps.user.output.items.3 }}  an entry of a list, from 0
//	{{ steps.0.output }}             a step by its index
//	{{ input["odd key"].x }}         a key that is not a plain word
//	{{ secrets.api }}                a secret: always exactly one name
//	{{ item }} {{ run.id }}
//	{{ input.lang? }}                null where it is missing
//	{{ input.lang ?? "de" }}         a default, as JSON, where it is missing or null
//	\{{                              two braces, no template
//
// A text that is exactly one template keeps the type of the value. Otherwise
// the value is put into the text: a string as it is, numbers and booleans as
// JSON writes them, lists and objects as compact JSON. A null in a text is an
// error, unless the template ends in ?, which then puts in nothing. Before two
// braces a backslash counts: an even number stands for half as many and a
// template, an odd number for half as many and two braces. Nowhere else does a
// backslash mean anything, nor do two closing braces on their own.
//
// Values are data: a value that looks like a template is not evaluated.
// Keys of objects hold no templates.
//
// # Conditions
//
// A condition is CEL over the same names: input.n > 3,
// steps.user.output.vip, steps["0"].output.x, has(input.lang),
// input.?lang.orValue("de"). Integers are CEL ints and other numbers doubles;
// the two compare with each other, but arithmetic on both needs double(x) or
// int(x). Beside CEL's own functions texts have lowerAscii, upperAscii, trim,
// split and replace, and lists of texts join.
//
// Both are bounded: the length of a path, depth, the size of what comes out,
// and for conditions cost and the context.
package expr
