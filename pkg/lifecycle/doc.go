// Package lifecycle is the contract with kwok: which nodes are fake, and which
// state an object is in, by the selectors of KWOK's Stages.
package lifecycle
