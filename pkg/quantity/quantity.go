// Package quantity parses quantities, and says what a text that is none should be.
package quantity

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// exponent finds exponents with which arithmetic would never end.
var exponent = regexp.MustCompile(`[eE][-+]?\d{3,}$`)

// Parse parses a quantity. The error says what text must be.
func Parse(text string) (resource.Quantity, error) {
	trimmed := strings.TrimSpace(text)
	if !exponent.MatchString(trimmed) {
		if quantity, err := resource.ParseQuantity(trimmed); err == nil {
			return quantity, nil
		}
	}
	message := "must be a quantity, for example 80Gi"
	if meant := suggest.Quantity(text); meant != "" {
		message += fmt.Sprintf("; use %q", meant)
	}
	if binary := suggest.BinaryQuantity(text); binary != "" {
		message += fmt.Sprintf(", or %q for binary units", binary)
	}
	return resource.Quantity{}, errors.New(message)
}
