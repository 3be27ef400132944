//go:build !race

package gotemplate

const raceDetector = false
