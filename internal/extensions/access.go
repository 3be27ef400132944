package extensions

import (
	"crypto/tls"
	"errors"

	"github.com/spf13/pflag"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/access"
)

// serveSecurely serves over TLS with a certificate, and requires a token that the API server authorizes for all but health.
func serveSecurely() app.Extension {
	var isSecure bool
	var certificate access.Certificate
	var secure *tls.Config
	return app.Extension{
		FlagsAfter:  "server-address",
		ClusterRole: "kwok-dra-secure-serving",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&isSecure, "secure-serving", isSecure, "serve over TLS, and require a token that the API server authorizes for all paths but /healthz, /readyz and /version")
			flags.StringVar(&certificate.CertFile, "tls-cert-file", certificate.CertFile, "certificate for --secure-serving, read again when it changes; default: a self-signed one for localhost")
			flags.StringVar(&certificate.KeyFile, "tls-private-key-file", certificate.KeyFile, "private key of that certificate")
		},
		Complete: func(*app.Options) (err error) {
			if isSecure {
				secure, err = certificate.TLS()
				return err
			}
			if certificate.CertFile+certificate.KeyFile != "" {
				return errors.New("--tls-cert-file and --tls-private-key-file are for --secure-serving: give it as well")
			}
			return nil
		},
		Provide: func(core *app.Core) {
			if isSecure {
				core.TLS, core.Guard = secure, access.NewGuard(core.Client).Wrap
			}
		},
	}
}
