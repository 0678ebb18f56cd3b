# A server of models: built from the wheel, run by a user without rights.
#
#   docker build -t unkernel .
#   docker run --rm -p 8080:8080 -v "$PWD/models:/models:ro" unkernel /models/income.uk

FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY src src
COPY cpp cpp
COPY bindings bindings
COPY tools tools
RUN pip wheel --no-deps --no-cache-dir -w /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN wheel=$(ls /wheels/unkernel-*.whl) && pip install --no-cache-dir "$wheel[serve]" && rm -r /wheels \
    && useradd --system --no-create-home --uid 10001 unkernel
USER 10001
EXPOSE 8080
# The server copies models to the temporary folder: mount a volume of their size there (docs/production.md).
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/v2/health/ready', timeout=2)"]
# The form with a list makes the server the first process, which gets SIGTERM when the container ends.
ENTRYPOINT ["unkernel", "serve", "--host", "0.0.0.0"]
