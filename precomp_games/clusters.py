"""Clusters of machines by Dask: what names one, and how it is reached.

    with cluster_client("tcp://scheduler:8786") as client:
        future = client.submit(function, task)

Encryption is set in Dask's own configuration (`distributed.comm.tls`), which the client reads as schedulers
and workers do.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from precomp_games.checks import check_instance, check_number, shown

__all__ = ["check_cluster", "cluster_client", "connected"]

_MOST_WORKERS = 1024
_MOST_SECONDS = 1e6
# A worker that died is started again; on a busy machine that may take more than the 15 s after which Dask
# gives it up.
_PATIENT = {"distributed.deploy.lost-worker-timeout": "1 hour"}
_ADDRESS = re.compile(r"(tcp|tls)://(\[[\w:.%]+\]|[\w.-]+)(:\d{1,5})?")


def check_cluster(cluster: Any, caller: str) -> str:
    """The name of a cluster; `cluster_client` says what that may be.

    Raises:
        ValueError: it is none.
    """
    kind, _, count = check_instance(cluster, str, "cluster", caller).partition(":")
    if kind == "local":
        known = count.isascii() and count.isdecimal() and len(count) < 5 and 1 <= int(count) <= _MOST_WORKERS
    else:
        known = _ADDRESS.fullmatch(cluster) is not None or cluster.endswith(".json")
    if known:
        return str(cluster)
    raise ValueError(
        f'{caller}: expected cluster to be a scheduler\'s address such as "tcp://host:8786", a scheduler '
        f'file *.json, or "local:4" for so many workers here, got {shown(cluster)}'
    )


def cluster_client(cluster: str, *, startup_seconds: float = 60.0) -> contextlib.AbstractContextManager[Any]:
    """A client of a cluster, in a `with`; at its end the client is closed, and what was started for it.

    Args:
        cluster: a scheduler's address ("tcp://host:8786", "tls://host:8786"), a scheduler file, or
            "local:N" for N workers on this machine, with one thread each.
        startup_seconds: how long to wait for the scheduler.

    Raises:
        ValueError: an argument out of range, or a cluster that is none of these.
        ConnectionError: where the `with` begins: dask.distributed is not installed, or there is no scheduler.
    """
    who = "cluster_client()"
    seconds = check_number(startup_seconds, "startup_seconds", who, above=0.0, most=_MOST_SECONDS)
    return connected(check_cluster(cluster, who), seconds, who)


@contextlib.contextmanager
def connected(cluster: str, seconds: float, caller: str) -> Iterator[Any]:
    """`cluster_client`, of what was checked, for another public function.

    Raises:
        ConnectionError: see there.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ConnectionError(
            f'{caller}: expected dask.distributed, got none: pip install "precomp-games[cluster]"'
        ) from error
    with contextlib.ExitStack() as closing:
        try:
            if cluster.startswith("local:"):
                closing.enter_context(dask.config.set(_PATIENT))
                where: dict[str, Any] = {
                    "address": closing.enter_context(
                        LocalCluster(
                            n_workers=int(cluster.partition(":")[2]),
                            threads_per_worker=1,
                            dashboard_address=None,
                        )
                    )
                }
            elif cluster.endswith(".json"):
                where = {"scheduler_file": cluster}
            else:
                where = {"address": cluster}
            client = closing.enter_context(Client(**where, timeout=seconds))
        except (OSError, RuntimeError, TimeoutError) as error:
            raise ConnectionError(
                f"{caller}: expected a scheduler at {cluster!r}, got none ({error}): start one with "
                "dask scheduler, and see that its address can be reached from here, by tls:// where its "
                "configuration requires encryption"
            ) from error
        except TypeError as error:  # what Dask makes of tls:// without a context of its own
            raise ConnectionError(
                f"{caller}: expected certificates for {cluster!r} in Dask's configuration, got none "
                f"({error}): set distributed.comm.tls"
            ) from error
        yield client
