# An image of a binary that is built already, so nothing is downloaded here.
# After "make image", which builds for amd64 and arm64, or for one of them:
#   docker buildx build --platform linux/amd64,linux/arm64 .
# After "make build" on Linux:
#   docker build --build-arg BINARY=bin/kwok-dra .
# "make image" makes an image like this one without a container engine.

# The binary is static, so the image has nothing else in it.
FROM scratch
ARG TARGETARCH
ARG BINARY=bin/linux/$TARGETARCH/kwok-dra
# Whatever the umask was, the user below must be able to run it.
COPY --chmod=755 $BINARY /kwok-dra
USER 65532:65532
ENTRYPOINT ["/kwok-dra"]
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="kwok-dra" \
      org.opencontainers.image.description="Gives the fake nodes of KWOK fake devices" \
      org.opencontainers.image.source="https://github.com/kwok-dra/kwok-dra" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.version="$VERSION"
