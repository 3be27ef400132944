// Command core is kwok-dra without any extension.
package main

import "github.com/kwok-dra/kwok-dra/pkg/app"

func main() {
	app.Main()
}
