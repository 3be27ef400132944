// Command conformance has kwok-dractl play stories with schedulers and autoscalers, one after the other, each on a cluster of
// its own, and writes docs/conformance.md and what it is made from.
package main
