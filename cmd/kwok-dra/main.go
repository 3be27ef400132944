// Command kwok-dra gives the fake nodes of KWOK fake devices. It runs beside
// the kwok controller.
package main

import (
	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions"
)

func main() {
	app.Main(extensions.All()...)
}
