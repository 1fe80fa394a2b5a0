# gpuemu in a container: `docker build -t gpuemu .`, then `docker run --rm -v "$PWD:/project" gpuemu test`.

FROM rust:1-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# The wheel has the programs, the native module and the package.
RUN python3 -m venv /build \
    && /build/bin/pip install --no-cache-dir "setuptools>=77.0.3" "setuptools-rust>=1.12" wheel \
    && /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:3.13-slim-bookworm
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -rf /wheels \
    && useradd --create-home gpuemu
# What is found is kept here: mount a volume to keep it longer than the container.
ENV GPUEMU_HOME=/home/gpuemu/.gpuemu
USER gpuemu
WORKDIR /project
ENTRYPOINT ["gpuemu"]
CMD ["--help"]
