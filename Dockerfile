# kafkaform without extras, for clusters that exist: docs/install.md says how to run it.
#   make image
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY constraints.txt examples/pipelines/ci/requirements.lock ./
# Its packages first, by their hashes: this layer stays until the lock file changes.
RUN python3 -m venv --without-pip /opt/kafkaform \
 && python3 -m pip --python /opt/kafkaform install --no-cache-dir --disable-pip-version-check \
      --require-hashes --only-binary :all: -r requirements.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY kafkaform/ kafkaform/
COPY providers/ providers/
COPY docs/man/ docs/man/
ARG VERSION
RUN test "$VERSION" = "$(python3 -c 'from kafkaform.version import VERSION; print(VERSION)')" \
 || { echo "VERSION is not that of kafkaform/version.py: use 'make image'" >&2; exit 1; }
RUN PIP_CONSTRAINT=constraints.txt python3 -m pip wheel --no-cache-dir --disable-pip-version-check \
      --no-deps --wheel-dir /src/dist . \
 && python3 -m pip --python /opt/kafkaform install --no-cache-dir --disable-pip-version-check \
      --no-deps --no-index /src/dist/*.whl

FROM python:3.11-slim-bookworm
ARG VERSION
LABEL org.opencontainers.image.title="kafkaform" \
      org.opencontainers.image.description="Plan and apply for Apache Kafka" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /opt/kafkaform /opt/kafkaform
# Nothing is written outside the mounted folder and /tmp. Logs of `alter` must outlive the container,
# so they are in the mounted folder, beside the lock.
ENV PATH=/opt/kafkaform/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    XDG_CACHE_HOME=/tmp/cache \
    XDG_STATE_HOME=/configuration/.kafkaform/user
WORKDIR /configuration
USER 65532:65532
ENTRYPOINT ["kafkaform"]
