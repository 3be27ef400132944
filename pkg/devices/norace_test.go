//go:build !race

package devices

const raceDetector = false
