"""A call that goes to another server of the same model where one fails."""

import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from judge.errors import CallError, JudgeError, OperationalError, RateLimitError, TransientError
from judge.models.connection import Connection
from judge.models.endpoints import Endpoint, Endpoints
from judge.models.records import Completion, Request


class Failover:
    """Asks several servers as if they were one.

    Args:
        connections: The servers by address, without credentials.
        clock: Gives the time in seconds.
    """

    def __init__(self, connections: Mapping[str, Connection], clock: Callable[[], float] = time.monotonic) -> None:
        self._connections = connections
        self._endpoints = Endpoints(tuple(connections), clock)

    @property
    def servers(self) -> Sequence[Endpoint]:
        """The servers, and how each of them does."""
        return self._endpoints.all

    async def post(self, body: bytes, request: Request) -> Completion:
        """Send a request to one server after the other until one gives a completion, which names its address.

        Args:
            body: The request as JSON.
            request: The request.

        Raises:
            CallError: The request cannot succeed; TransientError if asking again may help.
            OperationalError: No server will take a call until the user fixes something.
        """
        failed: dict[Endpoint, JudgeError] = {}
        # The prompts of one criterion about one turn begin alike.
        start = f"{request.criterion}\n{request.turn_id}"
        while (call := self._endpoints.take(start, failed)) is not None:
            endpoint = call.endpoint
            try:
                completion = await self._connections[endpoint.url].post(body, request)
            except OperationalError as error:
                failed[endpoint] = error
                self._endpoints.end_failed(call, str(error), lasting=True)
            except TransientError as error:
                failed[endpoint] = error
                self._endpoints.end_failed(call, str(error), wait=error.retry_after)
            except CallError:
                self._endpoints.end_replied(call)
                raise
            except BaseException:
                self._endpoints.end_unknown(call)
                raise
            else:
                self._endpoints.end_answered(call)
                return msgspec.structs.replace(completion, endpoint=endpoint.url)
        raise self._error(failed)

    def _error(self, failed: Mapping[Endpoint, JudgeError]) -> JudgeError:
        """One error for a call that failed at every server that it was tried at; the others ask to wait."""
        waiting = [endpoint for endpoint in self.servers if endpoint not in failed]
        errors = list(failed.values())
        said = [f"{endpoint.url}: {error}" for endpoint, error in failed.items()]
        message = "; ".join([*said, *(f"{endpoint.url}: {endpoint.trouble}" for endpoint in waiting)])
        if not waiting and all(isinstance(error, OperationalError) for error in errors):
            # All servers refuse; what the first one says of it decides how the run ends.
            return type(errors[0])(message)
        passing = [error for error in errors if isinstance(error, TransientError)]
        waits = [error.retry_after for error in passing if error.retry_after is not None]
        certain = len(waits) == len(passing)
        if waiting:
            waits.append(self._endpoints.wait(waiting))
        if all(isinstance(error, RateLimitError) for error in passing):
            every = "every server asks to wait: " if not failed else ""
            return RateLimitError(f"{every}{message}", min(waits) if certain else None)
        return TransientError(message, min(waits) if certain else None)

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            await connection.aclose()
