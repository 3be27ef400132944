//go:build race

package gotemplate

// raceDetector tells that pools of memory drop what they are given, by chance, so that
// more is allocated than otherwise.
const raceDetector = true
