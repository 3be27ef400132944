// Package features fits pools to an API server. The server silently drops fields of ResourceSlices whose feature gate
// is off: if they were sent nevertheless, every slice would always look edited.
package features
