// Package lifecycle is the contract with kwok: which nodes are fake, and in which state an object is by
// the selectors of KWOK's Stages. A selector or an option goes in, a predicate of Nodes and Pods comes
// out. What evaluating it may cost is bounded, and it never asks the API server.
package lifecycle
