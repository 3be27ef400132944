package broken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
)

// prepares and unprepares are calls of a plugin that can be replaced.
type (
	prepares   func(claims []*drav1.Claim, call func() (*drav1.NodePrepareResourcesResponse, error)) (*drav1.NodePrepareResourcesResponse, error)
	unprepares func(claims []*drav1.Claim, call func() (*drav1.NodeUnprepareResourcesResponse, error)) (*drav1.NodeUnprepareResourcesResponse, error)
)

// interceptCalls replaces calls of a plugin.
func interceptCalls(prepare prepares, unprepare unprepares) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		switch r := request.(type) {
		case *drav1.NodePrepareResourcesRequest:
			if prepare != nil {
				return prepare(r.GetClaims(), func() (*drav1.NodePrepareResourcesResponse, error) {
					return typedAnswer[*drav1.NodePrepareResourcesResponse](handler(ctx, request))
				})
			}
		case *drav1.NodeUnprepareResourcesRequest:
			if unprepare != nil {
				return unprepare(r.GetClaims(), func() (*drav1.NodeUnprepareResourcesResponse, error) {
					return typedAnswer[*drav1.NodeUnprepareResourcesResponse](handler(ctx, request))
				})
			}
		}
		return handler(ctx, request)
	}
}

func typedAnswer[Response any](response any, err error) (Response, error) {
	typed, _ := response.(Response)
	return typed, err
}

func foreignDevice(o *file.Options) grpc.UnaryServerInterceptor {
	foreign := &drav1.Device{PoolName: o.Node, DeviceName: "file-none"}
	return interceptCalls(func(_ []*drav1.Claim, call func() (*drav1.NodePrepareResourcesResponse, error)) (*drav1.NodePrepareResourcesResponse, error) {
		response, err := call()
		for _, claim := range response.GetClaims() {
			claim.Devices = append(claim.Devices, foreign)
		}
		return response, err
	}, nil)
}

// known are the claims that this process has prepared.
type known struct {
	mu     sync.Mutex
	claims map[string]bool
}

// addClaims adds claims, and returns an error for those that are known.
func (k *known) addClaims(claims []*drav1.Claim) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.claims == nil {
		k.claims = map[string]bool{}
	}
	var errs []error
	for _, claim := range claims {
		if k.claims[claim.GetUid()] {
			errs = append(errs, fmt.Errorf("claim %s is prepared already", claim.GetName()))
		}
		k.claims[claim.GetUid()] = true
	}
	return errors.Join(errs...)
}

func prepareOnce(*file.Options) grpc.UnaryServerInterceptor {
	prepared := &known{}
	return interceptCalls(func(claims []*drav1.Claim, call func() (*drav1.NodePrepareResourcesResponse, error)) (*drav1.NodePrepareResourcesResponse, error) {
		response, err := call()
		if err != nil {
			return nil, err
		}
		return response, prepared.addClaims(claims)
	}, nil)
}

// unknownClaim notes in a folder which claims any process has prepared.
func unknownClaim(o *file.Options) grpc.UnaryServerInterceptor {
	folder := filepath.Join(o.Plugins, o.Name, "seen")
	return interceptCalls(
		func(claims []*drav1.Claim, call func() (*drav1.NodePrepareResourcesResponse, error)) (*drav1.NodePrepareResourcesResponse, error) {
			for _, claim := range claims {
				if err := os.MkdirAll(filepath.Join(folder, claim.GetUid()), 0o755); err != nil {
					return nil, err
				}
			}
			return call()
		},
		func(claims []*drav1.Claim, call func() (*drav1.NodeUnprepareResourcesResponse, error)) (*drav1.NodeUnprepareResourcesResponse, error) {
			for _, claim := range claims {
				if _, err := os.Stat(filepath.Join(folder, claim.GetUid())); err != nil {
					return nil, fmt.Errorf("claim %s is not prepared", claim.GetName())
				}
			}
			return call()
		})
}

// leaveSpec writes again what was removed.
func leaveSpec(o *file.Options) grpc.UnaryServerInterceptor {
	return interceptCalls(nil, func(_ []*drav1.Claim, call func() (*drav1.NodeUnprepareResourcesResponse, error)) (*drav1.NodeUnprepareResourcesResponse, error) {
		specs, err := filepath.Glob(filepath.Join(o.CDI, "*.json"))
		if err != nil {
			return nil, err
		}
		before := map[string][]byte{}
		for _, spec := range specs {
			if before[spec], err = os.ReadFile(spec); err != nil {
				return nil, err
			}
		}
		response, err := call()
		for spec, content := range before {
			err = errors.Join(err, os.WriteFile(spec, content, 0o644))
		}
		return response, err
	})
}

// refuseKeptClaims refuses claims that have a CDI spec of another process, once: it would keep their devices from others.
func refuseKeptClaims(o *file.Options) grpc.UnaryServerInterceptor {
	prepared := &known{}
	return interceptCalls(
		func(claims []*drav1.Claim, call func() (*drav1.NodePrepareResourcesResponse, error)) (*drav1.NodePrepareResourcesResponse, error) {
			_ = prepared.addClaims(claims) // again is as good
			return call()
		},
		func(claims []*drav1.Claim, call func() (*drav1.NodeUnprepareResourcesResponse, error)) (*drav1.NodeUnprepareResourcesResponse, error) {
			for _, claim := range claims {
				specs, err := filepath.Glob(filepath.Join(o.CDI, "*"+claim.GetUid()+"*"))
				if err != nil {
					return nil, err
				}
				if len(specs) > 0 && prepared.addClaims([]*drav1.Claim{claim}) == nil {
					return nil, fmt.Errorf("claim %s is of another process", claim.GetName())
				}
			}
			return call()
		})
}

// kept is a folder with the answers for claims.
type kept string

func (k kept) answerFile(claim string) string { return filepath.Join(string(k), claim+".answer") }

// readAnswers returns the answers for those claims that there are.
func (k kept) readAnswers(claims []*drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
	all := &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{}}
	for _, claim := range claims {
		content, err := os.ReadFile(k.answerFile(claim.GetUid()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var answer drav1.NodePrepareResourceResponse
		if err == nil {
			err = json.Unmarshal(content, &answer)
		}
		if err != nil {
			return nil, err
		}
		all.Claims[claim.GetUid()] = &answer
	}
	return all, nil
}

// writeAnswers keeps the answers that are no errors.
func (k kept) writeAnswers(response *drav1.NodePrepareResourcesResponse) error {
	var errs []error
	for uid, answer := range response.GetClaims() {
		if answer.GetError() != "" {
			continue
		}
		content, err := json.Marshal(answer)
		errs = append(errs, err, os.WriteFile(k.answerFile(uid), content, 0o644))
	}
	return errors.Join(errs...)
}

// oldAnswers keeps answers in files, and looks into them first.
func oldAnswers(o *file.Options) grpc.UnaryServerInterceptor {
	answers := kept(filepath.Join(o.Plugins, o.Name))
	return interceptCalls(
		func(claims []*drav1.Claim, call func() (*drav1.NodePrepareResourcesResponse, error)) (*drav1.NodePrepareResourcesResponse, error) {
			old, err := answers.readAnswers(claims)
			if err != nil || len(old.GetClaims()) == len(claims) {
				return old, err
			}
			response, err := call()
			return response, errors.Join(err, answers.writeAnswers(response))
		},
		func(claims []*drav1.Claim, call func() (*drav1.NodeUnprepareResourcesResponse, error)) (*drav1.NodeUnprepareResourcesResponse, error) {
			for _, claim := range claims {
				if err := os.RemoveAll(answers.answerFile(claim.GetUid())); err != nil {
					return nil, err
				}
			}
			return call()
		})
}
