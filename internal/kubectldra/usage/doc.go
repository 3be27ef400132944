// Package usage says which Pod and which claim has which device, in which state and since when. It is pure.
package usage
