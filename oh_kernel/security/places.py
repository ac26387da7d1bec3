"""What kind of place does a path, an address or a variable's name mean?

Read from the name alone: nothing is looked up on the disk.
"""

import re
from collections.abc import Iterable
from enum import Enum, auto
from fnmatch import fnmatchcase

from oh_kernel.security.tables import names

CHANGES_HOOKS = "changes hooks, which say what the agent may do and what runs by itself"
CHANGES_STARTUP = "changes what runs at a later start or who may log in"


class Place(Enum):
    """Where a path leads, as far as its text tells."""

    WORKSPACE = auto()
    REMADE = auto()
    """In the workspace and made again by a tool: build products, caches, logs."""
    TEMPORARY = auto()
    OUTSIDE = auto()
    SYSTEM = auto()
    STARTUP = auto()
    """Run or obeyed at the next start of a shell or kernel, or at the next login."""
    HOOK = auto()
    """Says what runs by itself around the agent's own calls, and whether that is trusted."""
    DEVICE = auto()
    NOWHERE = auto()
    """`/dev/null`, the terminal: writing there keeps nothing."""
    UNKNOWN = auto()


_REMADE = names(
    """
    build dist *.egg-info .eggs node_modules .venv venv __pycache__ *.pyc *.pyo
    .ipynb_checkpoints .pytest_cache .mypy_cache .ruff_cache .tox .nox .cache .hypothesis
    .parcel-cache .next .turbo .coverage .coverage.* htmlcov *.log _build site .gradle
    .eslintcache .sass-cache coverage.xml .DS_Store *.o *.obj *.class *.aux *.tmp *.swp .dvc/tmp
    .pixi .nyc_output *.tsbuildinfo
    """
)
_SYSTEM = names(
    """
    /etc /usr /bin /sbin /lib /lib32 /lib64 /boot /opt /var /root /sys /proc /System /Library
    /Applications /run /snap
    """
)
_STARTUP = names(
    """
    */.bashrc */.bash_profile */.bash_login */.bash_logout */.bash_aliases */.profile */.zshrc
    */.zshenv */.zprofile */.zlogin */.kshrc */.cshrc */.tcshrc */.inputrc */.xinitrc
    */.xprofile */.xsessionrc */.pam_environment */.config/fish/* */.config/autostart/*
    */.config/systemd/* */.config/environment.d/* */LaunchAgents/* */LaunchDaemons/*
    */.ipython/profile_*/startup* */.ipython/profile_*/ipython*config.py */.jupyter/*config*
    */.ssh */.ssh/* */authorized_keys */sitecustomize.py */usercustomize.py
    */site-packages/*.pth */.pythonrc* */.gitconfig */.config/git/* */.config/pip/* */.pip/*
    */.condarc */.Rprofile */.julia/config/* */kernels/*/kernel.json */.vimrc */.tmux.conf
    */.direnvrc
    """
)
_HOOKS = names(
    """
    */.openhands/hooks* */oh-kernel/hooks.json */oh-kernel/trusted_hooks.json
    */.git/hooks */.git/hooks/*
    """
)
_NOWHERE = {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin", "-"}
_TEMPORARY = re.compile(r"(?:/var)?/tmp/.|/dev/shm/.|\$\{?TMPDIR\b.*/")
_DEVICE = re.compile(r"/dev/(?!shm/|tcp/|udp/|fd/|pts/)")
_HOME = re.compile(r"(?:~[\w-]*|\$\{?HOME\}?|/home/[^/]+|/Users/[^/]+|/root)(?=/|$)")

_SECRET_FILES = names(
    """
    */.ssh/* */.ssh */id_rsa */id_dsa */id_ecdsa */id_ed25519 *.pem *.key *.p12 *.pfx *.kdbx
    *.jks */.aws */.aws/* */.azure */.azure/* */.netrc */_netrc */.env */.env.* */*.env */.envrc
    */.pgpass */.my.cnf */.git-credentials */.docker/config.json */.kube/config
    */.config/gcloud* */.kaggle/* */.config/gh/* */.config/hub */.pypirc */.npmrc */.gnupg
    */.gnupg/* */keyrings* */.password-store* */.boto */.s3cfg */rclone.conf */credentials
    */credentials.* */*credentials*.json */*service?account*.json */secrets */secrets.*
    */secret.* */.secrets* */.vault-token */huggingface/token */.huggingface/* */stored_tokens
    */.streamlit/secrets.toml */.dbt/profiles.yml */.databrickscfg */.snowsql/config
    */.snowflake/* */.openai* */.anthropic* */token.txt */*api_key* */*apikey* */*password*.txt
    */passwords.* */.*_history */history.sqlite */.lesshst */cookies.sqlite */Cookies
    */Login?Data */logins.json */key?.db */.mozilla/* */google-chrome/* */.config/chromium/*
    */Keychains/* /etc/shadow* /etc/gshadow* /etc/sudoers* /proc/*/environ */jpserver-*.json
    */nbserver-*.json */jupyter_cookie_secret */.ipython/*/history* */.config/op/*
    */.terraform.d/credentials* */.cargo/credentials* */.gem/credentials */.subversion/auth*
    */.wandb* */.config/wandb/* */.msmtprc */.authinfo* */kubeconfig */.Xauthority
    */.local/share/jupyter/runtime/* */ssh_host_*_key */.htpasswd */.vnc/passwd */wallet.dat
    """
)
_NO_SECRET = re.compile(
    r"\.pub$|known_hosts$|/\.ssh/config$|cacert\.pem$|ca-certificates|/cert\.pem$|fullchain\.pem$"
    r"|\.(?:example|sample|template|dist|tmpl|defaults?|md|py|ipynb)$|/\.kaggle/?$|\.crt$"
)
_SECRET_WORDS = (
    r"KEYS?|TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PASS|PWD|PAT|CREDENTIALS?|CREDS|DSN"
    r"|APIKEY"
)
_SECRET_VARIABLE = re.compile(
    rf"(?:^|_)(?:{_SECRET_WORDS})(?:_?\d+)?$|(?:PASSWORD|PASSWD|TOKEN|SECRET|APIKEY)$"
    r"|^(?:DATABASE|DB|REDIS|MONGO\w*|POSTGRES\w*|BROKER|AMQP)_(?:URL|URI)$|CONNECTION_STRING$"
    r"|(?:^|_)SECRET_|(?:^|_)COOKIE$",
)
_NO_SECRET_VARIABLE = {"PWD", "OLDPWD"}
_METADATA = re.compile(
    r"169\.254\.169\.254|169\.254\.170\.2|100\.100\.100\.200|metadata\.(?:google\.internal"
    r"|azure\.com)"
)
_HERE = re.compile(
    r"^(?:\w+://)?(?:[^@/]*@)?(?:localhost|127(?:\.\d+){3}|\[::1\]|0\.0\.0\.0"
    r"|host\.docker\.internal)"
    r"(?=[:/?]|$)"
)
_STORE = re.compile(
    r"^(?:s3[an]?|gs|gcs|abfss?|wasbs?|hdfs|az|adl|dbfs|b2|r2|oss|hf|swift|webhdfs|sftp|ftp)://",
    re.I,
)


def place_of(path: str) -> Place:
    """Where `path` leads.

    >>> place_of("build/lib").name, place_of("../data").name, place_of("/etc/hosts").name
    ('REMADE', 'OUTSIDE', 'SYSTEM')
    """
    path = path.removeprefix("file://")
    if path in _NOWHERE:
        return Place.NOWHERE
    if _DEVICE.match(path):
        return Place.DEVICE
    slashed = path if path.startswith(("/", "~", "$")) else f"/{path}"
    if _matches(slashed.rstrip("/"), _HOOKS):
        return Place.HOOK
    if _HOME.match(path) or path.startswith("/"):
        if _matches(slashed, _STARTUP):
            return Place.STARTUP
    elif _matches(slashed, [one for one in _STARTUP if "site" in one or "authorized" in one]):
        return Place.STARTUP
    if _TEMPORARY.match(path) and ".." not in path:
        return Place.TEMPORARY
    if any(path == one or path.startswith(one + "/") for one in _SYSTEM):
        return Place.SYSTEM
    if path == "/" or re.match(r"/+[*.]*$", path):
        return Place.SYSTEM
    return _inside_or_not(path)


def _inside_or_not(path: str) -> Place:
    path = re.sub(r"^\$\{?PWD\}?(?:/|$)", "./", path)
    if path.startswith(("/", "~")) or _HOME.match(path) or ".." in path.split("/"):
        return Place.OUTSIDE
    if path.startswith(("$", "`")):
        return Place.UNKNOWN
    parts = [part for part in path.split("/") if part not in ("", ".", "**")]
    if any(_is_remade(part) for part in parts):
        return Place.REMADE
    return Place.WORKSPACE


def _is_remade(part: str) -> bool:
    return any(part == one or fnmatchcase(part, one) for one in _REMADE)


def is_home_or_root(path: str) -> bool:
    """Whether `path` is the root, a home, or all that is in one of them.

    >>> [is_home_or_root(one) for one in ("/", "~/", "$HOME/*", "/home", "~/x")]
    [True, True, True, True, False]
    """
    bare = re.sub(r"/+[*.]*$", "", path)
    whole = _HOME.fullmatch(bare) or bare in ("", "/home", "/Users", *_SYSTEM)
    return bool(whole) and path != ""


def is_secret_path(path: str) -> bool:
    """Whether a file of this name holds credentials or what was typed.

    >>> [is_secret_path(one) for one in ("~/.aws/credentials", ".env", ".env.example", "a.env.py")]
    [True, True, False, False]
    """
    path = path.rstrip("/").removeprefix("file://")
    if not path or _NO_SECRET.search(path):
        return False
    slashed = path if path.startswith("/") else f"/{path}"
    return _matches(slashed, _SECRET_FILES)


def is_secret_variable(name: str) -> bool:
    """Whether a variable of the environment holds a secret, by its name.

    >>> [is_secret_variable(one) for one in ("HF_TOKEN", "PWD", "TOKENIZERS_PARALLELISM")]
    [True, False, False]
    """
    upper = name.upper()
    return upper not in _NO_SECRET_VARIABLE and bool(_SECRET_VARIABLE.search(upper))


def is_metadata_address(text: str) -> bool:
    """Whether `text` names the service that hands a cloud machine its credentials."""
    return bool(_METADATA.search(text))


def is_this_machine(address: str) -> bool:
    """Whether an address is this machine's own.

    >>> is_this_machine("http://127.0.0.1:8000/x"), is_this_machine("localhost.example.com")
    (True, False)
    """
    return bool(_HERE.match(address))


def is_store(address: str) -> bool:
    """Whether an address is in a store that is shared, such as a bucket."""
    return bool(_STORE.match(address))


def is_address(text: str) -> bool:
    """Whether `text` is an address in the network."""
    return bool(re.match(r"(?:https?|ftp|git\+\w+|git|ssh)://|www\.", text, re.I))


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
