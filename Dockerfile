# The binary is static, so the image has nothing else in it.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY pkg pkg
COPY stages stages
ARG TARGETOS TARGETARCH VERSION
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath \
    -ldflags "-s -w -X github.com/kwok-dra/kwok-dra/pkg/app.version=$VERSION" -o /kwok-dra ./cmd/kwok-dra

FROM scratch
COPY --from=build /kwok-dra /kwok-dra
USER 65532:65532
ENTRYPOINT ["/kwok-dra"]
