package cluster

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// endingEnv makes the test program one that starts a cluster, prints its
// directory, and ends in the way that the variable names.
const endingEnv = "KWOK_DRA_TEST_ENDING"

func TestMain(m *testing.M) {
	if ending := os.Getenv(endingEnv); ending != "" {
		end(ending)
	}
	os.Exit(m.Run())
}

func end(ending string) {
	o, err := Options{}.withDefaults()
	if err != nil {
		panic(err)
	}
	home, err := temporaryHome()
	if err != nil {
		panic(err)
	}
	fmt.Println(home)
	if _, err := startCluster(context.Background(), o, home); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	switch ending {
	case "panic":
		panic("as asked for")
	case "exit":
		os.Exit(1)
	case "wait":
		<-time.After(time.Hour) // until somebody ends this process
	}
}
