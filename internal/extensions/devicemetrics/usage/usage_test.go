package usage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func TestUtilization(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[time.Duration]float64{
		"75":                 {-time.Second: 0, 0: 75, time.Hour: 75},
		" 12.5% ":            {0: 12.5},
		"ramp(0,100,10m)":    {0: 0, 5 * time.Minute: 50, 10 * time.Minute: 100, time.Hour: 100},
		"ramp(80, 20%, 1m)":  {0: 80, 30 * time.Second: 50, time.Hour: 20},
		"wave(20, 90, 5m)":   {0: 20, 150 * time.Second: 90, 75 * time.Second: 55, 5 * time.Minute: 20},
		"noise(100, 0)":      {0: 100, time.Hour: 100},
		"noise(50, 0, 100m)": {time.Minute: 50},
	} {
		u, err := ParseUtilization(text)
		require.NoError(t, err, text)
		for since, value := range want {
			require.InDelta(t, value, u.At(100, 1, since), 1e-9, "%s after %s", text, since)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	const whole = 80 << 30
	for text, want := range map[string]map[time.Duration]float64{
		"40Gi":                 {0: 40 << 30},
		"50%":                  {0: 40 << 30},
		"100Gi":                {0: whole},
		"0":                    {0: 0},
		"ramp(0, 60Gi, 10m)":   {5 * time.Minute: 30 << 30},
		"ramp(10Gi, 100%, 1m)": {0: 10 << 30, time.Minute: whole},
	} {
		u, err := ParseMemory(text)
		require.NoError(t, err, text)
		for since, value := range want {
			require.InDelta(t, value, u.At(whole, 1, since), 1, "%s after %s", text, since)
		}
	}
}

// TestNoise stays in its bounds, moves, and is the same for the same seed.
func TestNoise(t *testing.T) {
	t.Parallel()
	u, err := ParseUtilization("noise(50, 10)")
	require.NoError(t, err)
	seed, other := Seed("default", "pod", "gpu-0"), Seed("default", "pod", "gpu-1")
	values, differ, sum := map[float64]bool{}, 0, 0.0
	for step := range 1000 {
		since := time.Duration(step) * noiseStep
		value := u.At(100, seed, since)
		require.InDelta(t, 50, value, 10)
		require.InDelta(t, value, u.At(100, seed, since+noiseStep-1), 0, "a value stays for a step")
		if value != u.At(100, other, since) {
			differ++
		}
		values[value] = true
		sum += value
	}
	require.Len(t, values, 1000)
	require.Equal(t, 1000, differ)
	require.InDelta(t, 50, sum/1000, 1)
}

func TestBounds(t *testing.T) {
	t.Parallel()
	u, err := ParseUtilization("noise(95, 50)")
	require.NoError(t, err)
	for step := range 100 {
		value := u.At(100, 7, time.Duration(step)*noiseStep)
		require.GreaterOrEqual(t, value, 0.0)
		require.LessOrEqual(t, value, 100.0)
	}
	require.Zero(t, Usage{}.At(100, 1, time.Hour))
}

func TestSeed(t *testing.T) {
	t.Parallel()
	again := Seed("a", "b")
	require.Equal(t, again, Seed("a", "b"))
	require.NotEqual(t, Seed("ab", "c"), Seed("a", "bc"))
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	const percent = `: must be a percentage from 0 to 100, or ramp(FROM, TO, DURATION), wave(MIN, MAX, PERIOD) or noise(MEAN, SPREAD) of these, such as 75 or wave(20, 90, 5m)`
	const memory = `: must be a quantity or a percentage with its sign, or ramp(FROM, TO, DURATION), wave(MIN, MAX, PERIOD) or noise(MEAN, SPREAD) of these, such as 40Gi, 50% or ramp(0, 60Gi, 10m)`
	for text, want := range map[string]string{
		"":                  `"" is no percentage from 0 to 100`,
		"NaN":               `"NaN" is no percentage from 0 to 100`,
		"-1":                `"-1" is no percentage from 0 to 100`,
		"101":               `"101" is no percentage from 0 to 100`,
		"40Gi":              `"40Gi" is no percentage from 0 to 100`,
		"wav(1, 2, 5m)":     `"wav" is no function`,
		"wave(1, 2, 5m":     `"wave(1, 2, 5m" has no closing parenthesis at its end`,
		"wave(1, 2)":        `it has 2 arguments`,
		"noise(1)":          `it has 1 arguments`,
		"ramp(1, 200, 1m)":  `"200" is no percentage from 0 to 100`,
		"ramp(x, 2, 1m)":    `"x" is no percentage from 0 to 100`,
		"ramp(1, 2, 5)":     `"5" is no duration above 0, such as 5m`,
		"noise(1, 2, -15s)": `"-15s" is no duration above 0, such as 5m`,
	} {
		_, err := ParseUtilization(text)
		require.EqualError(t, err, want+percent, text)
	}
	for text, want := range map[string]string{
		"much": `"much" is no quantity`,
		"-1Gi": `"-1Gi" is less than 0`,
		"0.5":  `"0.5" is less than a byte; as a part of the memory it is "50%"`,
		"150%": `"150%" is no percentage from 0 to 100`,
	} {
		_, err := ParseMemory(text)
		require.EqualError(t, err, want+memory, text)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	none, err := Parse(map[string]string{"other": "x"})
	require.NoError(t, err)
	require.Zero(t, none)
	parsed, err := Parse(map[string]string{v1alpha1.UsageGPUAnnotation: "lots", v1alpha1.UsageMemoryAnnotation: "50%"})
	require.ErrorContains(t, err, `annotation dra.kwok.x-k8s.io/usage-gpu "lots": "lots" is no percentage`)
	require.Equal(t, Annotations{Memory: Usage{first: Amount{50, true}}}, parsed, "the other one counts")
}
