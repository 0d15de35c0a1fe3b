"""Pages of the demo that need an extra to be installed."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from mm2slo_cli.demo.demo_environment import DemoEnvironment


@contextmanager
def optional_page(
    environment: DemoEnvironment,
    name: str,
    run: Callable[[DemoEnvironment], AbstractContextManager[str]],
) -> Iterator[None]:
    """Run what serves a page, and add its URL to `extra_urls` as *name*.

    Does nothing if its extra is not installed.
    """
    with ExitStack() as resources:
        with suppress(ModuleNotFoundError):
            environment.extra_urls[name] = resources.enter_context(run(environment))
        yield
