package usage

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"
)

// Usage is how much is used over time. The zero Usage is none.
type Usage struct {
	curve curve
	// first and second are what the curve begins with and goes to. Of noise they are the
	// middle and how far it goes to both sides.
	first, second Amount
	// period is how long the curve takes.
	period time.Duration
}

// Amount is a part of a whole.
type Amount struct {
	// Value is in percent where Percent is set, and otherwise in the unit of the whole.
	Value   float64
	Percent bool
}

// Of returns the amount in the unit of the whole.
func (a Amount) Of(whole float64) float64 {
	if a.Percent {
		return a.Value / 100 * whole
	}
	return a.Value
}

// curve is how usage changes over time.
type curve uint8

const (
	constant curve = iota
	ramp
	wave
	noise
)

// At returns what is used of a whole at a time since the start, from 0 to the whole.
func (u Usage) At(whole float64, seed uint64, since time.Duration) float64 {
	if since < 0 {
		return 0
	}
	first, second := u.first.Of(whole), u.second.Of(whole)
	value := first
	switch u.curve {
	case ramp:
		value += (second - first) * min(1, since.Seconds()/u.period.Seconds())
	case wave:
		value += (second - first) * (1 - math.Cos(2*math.Pi*since.Seconds()/u.period.Seconds())) / 2
	case noise:
		value += second * randomAt(seed, uint64(since/u.period))
	}
	return min(max(value, 0), whole)
}

// randomAt returns a number from -1 to 1, always the same one for a seed and step.
func randomAt(seed, step uint64) float64 {
	// The constants are those of splitmix64, a generator that needs no state.
	x := seed + (step+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11)/(1<<52) - 1
}

// Seed returns the seed of a device in a Pod. The devices of a Pod differ, and a Pod that is created
// again under its name behaves as before.
func Seed(names ...string) uint64 {
	hash := fnv.New64a()
	for _, name := range names {
		_, _ = fmt.Fprintf(hash, "%s\x00", name)
	}
	return hash.Sum64()
}
