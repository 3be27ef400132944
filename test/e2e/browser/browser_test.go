package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// limit bounds all that a test does in the browser, however busy the machine.
const limit = 5 * time.Minute

// findBrowser skips the test where there is no browser.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no chromium or google-chrome in PATH: install the package chromium to run this test")
	return ""
}

// tab is a page that is open in a browser of its own.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu sync.Mutex
	// errors are what the browser complained of.
	errors []string
}

// open opens an address in a window.
func open(t *testing.T, url string, width, height int64) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(findBrowser(t)),
		chromedp.WSURLReadTimeout(limit),
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", false),
	)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	b.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	b.wait(`document.getElementById("status").dataset.state === "live" && document.getElementById("grid").ariaBusy === "false"`)
	return b
}

// listen notes scripts that fail and what the security policy has blocked.
func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, fmt.Sprint(event.ExceptionDetails.Text, event.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError || event.Entry.Source == log.EntrySourceSecurity {
			b.errors = append(b.errors, event.Entry.Text)
		}
	}
}

func (b *tab) requireNoErrors() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.errors)
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// wait waits until an expression is true. chromedp's own Poll makes a function of
// text, which the page's security policy forbids.
func (b *tab) wait(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit/3)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(`new Promise((resolve) => {
		const look = () => (%s) ? resolve(true) : requestAnimationFrame(look);
		look();
	})`, expression), chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, expression)
}

// eval is the value of an expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

func (b *tab) count(selector string) int {
	b.t.Helper()
	return eval[int](b, fmt.Sprintf(`document.querySelectorAll(%q).length`, selector))
}

// set has a field say something, as a person would.
func (b *tab) set(id, value string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf(`(() => {
		const field = document.getElementById(%q);
		field.value = %q;
		for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, {bubbles: true}));
		return true;
	})()`, id, value))
}

// pointAt moves the mouse to a cell, or clicks it.
func (b *tab) pointAt(selector string, click bool) {
	b.t.Helper()
	at := eval[[]float64](b, fmt.Sprintf(`(() => {
		const at = document.querySelector(%q).getBoundingClientRect();
		return [at.x + at.width / 2, at.y + at.height / 2];
	})()`, selector))
	if click {
		b.do(chromedp.MouseClickXY(at[0], at[1]))
		return
	}
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, at[0], at[1]))
}

// scheme prefers light or dark colours.
func (b *tab) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	require.NoError(b.t, err)
}

// picture keeps a screenshot in the directory $PICTURES, if that is set.
func (b *tab) picture(name string) {
	b.t.Helper()
	directory := os.Getenv("PICTURES")
	if directory == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.MkdirAll(directory, 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join(directory, name+".png"), png, 0o644))
}

// pictures keeps a screenshot in each colour scheme.
func (b *tab) pictures(name string) {
	b.t.Helper()
	for _, scheme := range []string{"dark", "light"} {
		b.scheme(scheme)
		b.picture(name + "-" + scheme)
	}
}
