// Package facts says what one object of the API tells by itself: of a Pod its claims and
// whether it has ended, of a claim its node and the entries of its devices, of a
// ResourceSlice what plans compare. The caches keep it, and plans rest on it. Everything in it is pure.
package facts
