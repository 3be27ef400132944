// Package lifecycle is the contract with kwok: which nodes are fake, and what
// state an object is in, asked with the selectors of KWOK's Stages.
package lifecycle
