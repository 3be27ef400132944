package usage

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// noiseStep is how long noise keeps a value by default, the usual interval of scrapes.
const noiseStep = 15 * time.Second

// valid is what may be written.
const valid = "must be %s, or ramp(FROM, TO, DURATION), wave(MIN, MAX, PERIOD) or noise(MEAN, SPREAD) of these, such as %s"

// ParseUtilization parses how busy a device is, in percent of the whole.
func ParseUtilization(text string) (Usage, error) {
	u, err := parseUsage(text, parsePercentage)
	if err != nil {
		return Usage{}, fmt.Errorf("%w: "+valid, err, "a percentage from 0 to 100", "75 or wave(20, 90, 5m)")
	}
	return u, nil
}

// ParseMemory parses how much memory of a device is used.
func ParseMemory(text string) (Usage, error) {
	u, err := parseUsage(text, parseQuantity)
	if err != nil {
		return Usage{}, fmt.Errorf("%w: "+valid, err, "a quantity or a percentage with its sign", "40Gi, 50% or ramp(0, 60Gi, 10m)")
	}
	return u, nil
}

var curves = map[string]curve{"ramp": ramp, "wave": wave, "noise": noise}

// parseUsage parses AMOUNT or NAME(AMOUNT, AMOUNT, DURATION).
func parseUsage(text string, amount func(string) (Amount, error)) (u Usage, err error) {
	text = strings.TrimSpace(text)
	name, rest, isCall := strings.Cut(text, "(")
	if !isCall {
		u.first, err = amount(text)
		return u, err
	}
	arguments, closed := strings.CutSuffix(rest, ")")
	if !closed {
		return u, fmt.Errorf("%q has no closing parenthesis at its end", text)
	}
	var known bool
	if u.curve, known = curves[strings.TrimSpace(name)]; !known {
		return u, fmt.Errorf("%q is no function", strings.TrimSpace(name))
	}
	return u, u.parseArguments(strings.Split(arguments, ","), amount)
}

func (u *Usage) parseArguments(arguments []string, amount func(string) (Amount, error)) (err error) {
	for i := range arguments {
		arguments[i] = strings.TrimSpace(arguments[i])
	}
	if u.curve == noise && len(arguments) == 2 {
		arguments = append(arguments, noiseStep.String())
	}
	if len(arguments) != 3 {
		return fmt.Errorf("it has %d arguments", len(arguments))
	}
	if u.first, err = amount(arguments[0]); err != nil {
		return err
	}
	if u.second, err = amount(arguments[1]); err != nil {
		return err
	}
	if u.period, err = time.ParseDuration(arguments[2]); err != nil || u.period <= 0 {
		return fmt.Errorf("%q is no duration above 0, such as 5m", arguments[2])
	}
	return nil
}

func parsePercentage(text string) (Amount, error) {
	value, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
	if err != nil || !(value >= 0 && value <= 100) { // which NaN is not
		return Amount{}, fmt.Errorf("%q is no percentage from 0 to 100", text)
	}
	return Amount{value, true}, nil
}

func parseQuantity(text string) (Amount, error) {
	if strings.HasSuffix(text, "%") {
		return parsePercentage(text)
	}
	parsed, err := resource.ParseQuantity(text)
	switch value := parsed.AsApproximateFloat64(); {
	case err != nil:
		return Amount{}, fmt.Errorf("%q is no quantity", text)
	case value < 0:
		return Amount{}, fmt.Errorf("%q is less than 0", text)
	case value > 0 && value < 1: // which is meant as a part
		return Amount{}, fmt.Errorf("%q is less than a byte; as a part of the memory it is %q", text, strconv.FormatFloat(value*100, 'f', -1, 64)+"%")
	default:
		return Amount{Value: value}, nil
	}
}

// Annotations are what a Pod uses of each of its devices.
type Annotations struct {
	Utilization, Memory Usage
}

// Parse parses the annotations of a Pod. An annotation with a mistake counts as none and returns an
// error; the other one still counts.
func Parse(annotations map[string]string) (Annotations, error) {
	var parsed Annotations
	var problems []error
	take := func(name string, into *Usage, parse func(string) (Usage, error)) {
		text, ok := annotations[name]
		if !ok {
			return
		}
		var err error
		if *into, err = parse(text); err != nil {
			problems = append(problems, fmt.Errorf("annotation %s %q: %w", name, text, err))
		}
	}
	take(v1alpha1.UsageGPUAnnotation, &parsed.Utilization, ParseUtilization)
	take(v1alpha1.UsageMemoryAnnotation, &parsed.Memory, ParseMemory)
	return parsed, errors.Join(problems...)
}
