// Command core is kwok-dra without any extension.
package main

import "github.com/kwok-dra/kwok-dra/internal/app"

func main() {
	app.Main()
}
