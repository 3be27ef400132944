// Command kwok-dra gives the fake nodes of KWOK fake devices. It runs beside
// the kwok controller.
package main

import (
	"github.com/kwok-dra/kwok-dra/pkg/app"
	"github.com/kwok-dra/kwok-dra/pkg/extensions"
)

func main() {
	app.Main(extensions.All()...)
}
