// Package boundedjq has the selectors that kwok-dra evaluates be in a subset of jq. Those of Stages,
// which kwok evaluates, are in any jq. There are two because gojq bounds nothing but steps: in full jq one
// step of "x" * 500000000 takes half a gigabyte of the process that serves all Nodes, while kwok accepts
// such a Stage, so that a check of Stages must accept it too.
//
// An expression goes in; out comes what is evaluated for it, or why it is refused. A selector of the subset
// may read, compare and test, and collect what it has read. That takes some bytes for each step, so the
// limit of steps also limits memory. What takes long in one step is replaced by more steps.
package boundedjq
