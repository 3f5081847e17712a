"""Export of OpenTelemetry spans to a collector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from wellkept.errors import Invalid
from wellkept.program import advise_install

SERVICE = "wellkept"


@contextmanager
def export_spans(endpoint: str) -> Iterator[None]:
    """Send spans to the OTLP collector at `endpoint` in batches during the block; flush them at its end.

    Raises: Invalid when the packages are missing.
    """
    if not endpoint:
        yield
        return
    try:
        trace = import_module("opentelemetry.trace")
        sdk = import_module("opentelemetry.sdk.trace")
        batches = import_module("opentelemetry.sdk.trace.export")
        resources = import_module("opentelemetry.sdk.resources")
        otlp = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ModuleNotFoundError as error:
        raise Invalid(f"Sending spans needs more packages; {advise_install('otel')}") from error
    provider = sdk.TracerProvider(resource=resources.Resource.create({"service.name": SERVICE}))
    exporter = otlp.OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(batches.BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
