package cluster

import (
	"fmt"
	"os"
	"time"
)

// TimesEnv names a file that gets a line for each cluster that starts: how long that
// took. Optional. The tests of this repository sum them up.
const TimesEnv = "KWOK_DRA_TIMES"

// StartTime begins the lines of clusters in the file of TimesEnv.
const StartTime = "cluster"

// AppendTime adds a line to the file of TimesEnv, which several processes write.
func AppendTime(what string, took time.Duration) error {
	path := os.Getenv(TimesEnv)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("note the time of a %s: %w", what, err)
	}
	defer func() { _ = file.Close() }()
	if _, err := fmt.Fprintln(file, what, took); err != nil {
		return fmt.Errorf("note the time of a %s: %w", what, err)
	}
	return nil
}
