"""Which errors a person can be shown, as one tree.

OpenHandsError                     one short line with its remedy, shown without a traceback
|- SettingsError                   a flag, setting or file of settings cannot be used
|- ModelError                      the model did not answer
|  |- ModelNotConfigured           no model was chosen
|  |- ModelAuthError               the provider refused the key (401, 403)
|  |- ModelRateLimited             still refused after the retries (429)
|  |- ModelUnavailable             connection, timeout or 5xx, after the retries
|  |- ModelRequestRefused          the provider refuses this request (400, 404, 422)
|  |  |- ContextWindowExceeded     ... because it is too long
|  |  `- ContentPolicyRefused      ... because of its content
|  |- ModelGaveNoAnswer            nothing but empty replies
|  |- ReplayMismatch               a recorded model was asked something that is not on the record
|  `- ScriptExhausted              a scripted model was asked more often than it has answers
|- StoreError                      the event log cannot be used
|  |- ConversationInUse            another process is writing it
|  |- ConversationNotFound         no conversation has this id
|  |- StoreVersionError            the file was written by a newer version
|  |- DuplicateEvent               an event with this id is already stored
|  `- InvalidQuery                 the event log cannot be asked this
|- ConversationError               the conversation cannot do this now
|- LimitReached                    one more model call could take more than was allowed
|  |- MaxBudgetReached
|  `- MaxTokensReached
|- PriceUnknown                    a budget cannot be kept for a model of unknown price
|- SessionError                    a shell or namespace that tools drive failed
|  |- ShellDied
|  `- KernelDied
`- ShadowedLibrary                 a file in the working folder hides a library
"""


class OpenHandsError(Exception):
    """An error that a person can act on: what happened, and in `remedy` what to do about it."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        if not self.remedy:
            return self.message
        # What others said is quoted at the end of some messages, without a full stop.
        stop = "" if self.message.endswith((".", "!", "?", ":", "\n")) else "."
        return f"{self.message}{stop} {self.remedy}"

    def _render_traceback_(self) -> list[str]:
        """What IPython shows for it: one line instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class SettingsError(OpenHandsError):
    """A flag, a setting or a file of settings cannot be used."""


class ModelError(OpenHandsError):
    """The model did not answer. `retry_after_s`: how long the provider asks to wait, if it does."""

    retry_after_s: float | None = None


class ModelNotConfigured(ModelError):
    """No model was chosen."""


class ModelAuthError(ModelError):
    """The provider refused the key."""


class ModelRateLimited(ModelError):
    """The provider still asks to wait after every retry."""


class ModelUnavailable(ModelError):
    """The provider could not be reached, or failed, after every retry."""


class ModelRequestRefused(ModelError):
    """The provider refuses this request; asking again would not help."""


class ContextWindowExceeded(ModelRequestRefused):
    """The request is longer than the model's context window."""


class PictureRefused(ModelRequestRefused):
    """The provider refuses the request because of a picture in it."""


class ContentPolicyRefused(ModelRequestRefused):
    """The provider refuses the request because of its content."""


class ModelGaveNoAnswer(ModelError):
    """The model sent nothing but empty replies."""


class ReplayMismatch(ModelError):
    """A recorded model was asked something that is not on its record."""


class ScriptExhausted(ModelError):
    """A scripted model was asked more often than it has answers."""


class StoreError(OpenHandsError):
    """The event log cannot be used."""


class ConversationInUse(StoreError):
    """Another process is writing this conversation."""


class ConversationNotFound(StoreError):
    """No stored conversation has this id."""


class StoreVersionError(StoreError):
    """The event log was written by a newer version."""


class DuplicateEvent(StoreError):
    """An event with this id is already stored."""


class InvalidQuery(StoreError):
    """The event log cannot be asked this: a limit, an order, a time or a page that is not there."""


class ConversationError(OpenHandsError):
    """The conversation cannot do this now."""


class LimitReached(OpenHandsError):
    """One more model call could take more than was allowed."""


class MaxBudgetReached(LimitReached):
    """... more US dollars."""


class MaxTokensReached(LimitReached):
    """... more tokens."""


class PriceUnknown(OpenHandsError):
    """A budget cannot be kept, as the price of a model is not known."""


class SessionError(OpenHandsError):
    """A long-lived thing that tools drive has failed."""


class ShellDied(SessionError):
    """The shell ended."""


class KernelDied(SessionError):
    """The process that ran the user's Python ended."""


class ShadowedLibrary(OpenHandsError):
    """A file in the working folder hides a library that is needed."""
