"""How risky are the commands for databases, containers, clusters and shared stores?"""

import re
from collections.abc import Iterator

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.places import is_store
from oh_kernel.security.shell.files import is_remote
from oh_kernel.security.shell.model import Call, Kind
from oh_kernel.security.tables import by_name, names

_DESTROYS = set(
    names(
        """
    delete destroy purge drop wipe terminate erase rm rb remove nuke uninstall drain undeploy
    deprovision flush flushall reset empty delete-bucket detach deallocate prune reset_db
    sqlflush db:drop db:reset delete-object delete-objects delete-table terminate-instances
    delete-stack abandon
    """
    )
)
_LOOKS = set(
    names(
        """
    list ls get describe show status version info help logs whoami config top ps plan validate
    """
    )
)
_SECRETS = re.compile(
    r"^gcloud auth (?:application-default )?print-\S*token"
    r"|^gh auth (?:token|status .*(?:-t|--show-token))"
    r"|^aws (?:secretsmanager get-secret-value|sts (?:get-session-token|assume-role)"
    r"|configure (?:get|export-cred)"
    r"|ssm get-parameters?\b.*--with-decryption|ecr get-login|codeartifact get-auth)"
    r"|^az (?:account get-access-token|keyvault secret show|storage account keys|ad sp create)"
    r"|^kubectl (?:\S+ )*(?:get|describe) secrets?\b.*(?:-o|--output)|^kubectl config view .*--raw"
    r"|^kubectl create token|^vault (?:kv get|read|print token|token lookup)|^op (?:read"
    r"|item get)|^bw (?:get|list|export)"
    r"|^heroku (?:config|auth:token)|^doctl auth|^databricks (?:auth token|secrets get)"
    r"|^gcloud secrets versions access"
    r"|^(?:huggingface-cli|hf) (?:auth )?token|^docker(?: compose"
    r"|-compose) config\b(?!.*--(?:quiet|services|images))"
    r"|^terraform output .*-(?:json|raw)|^doppler secrets|^chamber (?:read|export)|^sops (?:-d"
    r"|--decrypt|decrypt)"
    r"|^(?:jupyter|jupyter-\w+)(?: server| lab| notebook)? list\b|^oc whoami -t"
    r"|^flyctl auth token|^npm token list"
    r"|^docker inspect .*Env|^keyring get|^lpass show|^gopass show|^wandb .*api.?key"
)
_CLOUDS = re.compile(
    r"(?:aws|gcloud|az|gsutil|kubectl|oc|helm|terraform|tofu|terragrunt|pulumi|heroku|doctl"
    r"|flyctl|fly|eksctl"
    r"|ibmcloud|databricks|dbfs|s3cmd|s5cmd|mc|b2|rclone|azcopy|hdfs|hadoop|bq|cdk|serverless"
    r"|sls|vercel|netlify"
    r"|virsh|vagrant|minikube|kind|k3d|nomad|consul|etcdctl|ceph|rados|influx|kafka-\S+"
    r"|rabbitmqctl|supabase"
    r"|firebase|gh|glab|huggingface-cli|hf|kaggle|modal|sky|ray|prefect|dagster|airflow|mlflow"
    r"|dvc|rails|flask"
    r"|alembic|multipass|lxc|incus|openstack|nova|swift|cf|railway|render)$"
)
_UPLOADS = re.compile(
    r"^(?:huggingface-cli|hf) (?:upload|repo create)|^kaggle (?:datasets|kernels|models"
    r"|competitions) \S*\s?(?:create|version|push|submit)"
    r"|^kaggle competitions submit|^gh (?:release (?:create|upload)|gist create|repo create)"
    r"|^glab (?:release|snippet)"
    r"|^(?:dvc|lakectl) push|^(?:docker|podman)(?: image| compose)? push"
    r"|^az storage \S+ (?:upload|copy)|^b2 (?:upload|file upload)"
    r"|^mlflow artifacts log|^wandb (?:sync|artifact put)|^(?:vercel|netlify|firebase|surge"
    r"|gcloud app) .*(?:deploy|--prod)"
    r"|^quarto publish|^mkdocs gh-deploy|^jupyter-?book .*publish|^rsconnect deploy"
    r"|^nbgitpuller|^zenodo|^aws s3api put-object"
    r"|^hdfs dfs -(?:put|copyFromLocal|moveFromLocal)|^s3cmd (?:put|sync)|^modal volume put"
)


def _cloud(call: Call) -> Iterator[Finding]:
    line = call.line
    if _SECRETS.search(line):
        yield high("shows credentials")
    if _UPLOADS.search(line):
        yield high("sends data out")
    yield from _between_stores(call)
    yield from by_verb(call)
    if re.search(
        r"public-read|allUsers|--acl public|put-bucket-policy|put-bucket-acl|0\.0\.0\.0/0", line
    ):
        yield high("opens a store to everybody")
    if (
        "-auto-approve" in line
        or "--auto-approve" in line
        or re.match(r"pulumi up.*(?:-y|--yes)", line)
    ):
        yield high("changes infrastructure without a question")
    yield medium("talks to a service")


def by_verb(call: Call) -> Iterator[Finding]:
    """What a program does with things that are not on this machine, by the verb among its words."""
    if not (
        _CLOUDS.match(call.name) or ":" in "".join(call.texts[:1]) or call.name.startswith("manage")
    ):
        return
    words = [word.text for word in call.operands()][:4]
    if call.name == "dvc" and words[:1] == ["remove"]:
        return
    if any(
        re.match(r"--?delete(?:-\w+)*$|^-rm(?:r|dir)?$|-skipTrash|^--destroy$|^-destroy$", text)
        for text in call.texts
    ):
        if words[:1] != ["plan"]:
            yield high("deletes what is not on this machine")
    elif (
        any(
            word in _DESTROYS or re.match(r"(?:delete|terminate|destroy|purge)-", word)
            for word in words
        )
        and words[0] not in _LOOKS
    ):
        yield high("deletes what is not on this machine")
    if re.match(
        r"(?:alembic downgrade|mlflow gc|dvc (?:gc|destroy)|airflow db (?:reset|clean)"
        r"|helm rollback)",
        call.line,
    ):
        yield high("throws stored work away")


def _between_stores(call: Call) -> Iterator[Finding]:
    """`aws s3 cp`, `gsutil rsync`, `rclone copy`: what goes into a store leaves this machine."""
    verbs = {
        "cp",
        "mv",
        "sync",
        "copy",
        "rsync",
        "move",
        "copyto",
        "put",
        "mirror",
        "moveto",
        "upload",
    }
    words = [
        word.text
        for word in call.operands(("--profile", "--region", "--exclude", "--include", "-m"))
    ]
    if not verbs & set(words[:3]):
        return
    places = [word for word in words if word not in verbs][
        1 if call.name in ("aws", "gcloud", "az") else 0 :
    ]
    target = places[-1] if places else ""
    if is_store(target) or (
        call.name in ("rclone", "mc", "azcopy") and (is_remote(target) or "://" in target)
    ):
        yield high("sends data out")
    if (
        {"sync", "move", "mv", "moveto"} & set(words[:3])
        and any(is_store(one) for one in places[:-1])
        and "sync" not in words[:3]
    ):
        yield high("deletes what is not on this machine")


def _docker(call: Call) -> Iterator[Finding]:
    line = " ".join(call.texts)
    if _SECRETS.search(call.line):
        yield high("shows credentials")
    if re.search(r"(?:^|\s)(?:system|volume|builder|container|image|network) prune\b", line):
        whole = re.search(r"(?:system|volume) prune", line)
        yield high("deletes what containers keep") if whole else medium("tidies up")
    if re.search(
        r"\bvolume (?:rm|remove)\b|\bdown\b.*\s(?:-v|--volumes|--rmi)\b"
        r"|^(?:compose )?rm\b.*\s(?:-\w*v\w*|--volumes)\b",
        line,
    ):
        yield high("deletes what containers keep")
    if re.search(
        r"--privileged|(?:-v|--volume[= ]|source=|src=)\s?=?/(?::|,|\s|etc\b|usr\b"
        r"|var/run/docker|root\b)"
        r"|docker\.sock|--pid[= ]host|--cap-add[= ](?:ALL|SYS_ADMIN)|--userns[= ]host",
        line,
    ):
        yield high("gives a container the machine's root")
    ends = re.match(r"(?:rm|kill|stop|rmi|restart|container (?:rm|kill|stop))\b", line)
    if ends and any(not word.is_known or word.is_wild for word in call.args):
        yield high("stops or deletes containers of others")
    if _UPLOADS.search(call.line):
        yield high("publishes an image")
    if re.match(r"(?:swarm leave|stack rm|service rm|node rm|compose .*rm -\w*v)", line):
        yield high("deletes services")
    if not re.match(
        r"(?:ps|images|logs|inspect|stats|version|info|top|port|diff|history|search"
        r"|(?:container|image|volume|network|context) (?:ls|list|inspect)|compose (?:ps|logs"
        r"|config|ls|images))\b",
        line,
    ):
        yield medium("changes containers")


def _drops(call: Call) -> Iterator[Finding]:
    yield high("drops or empties a table or database")


def _sql(call: Call) -> Iterator[Finding]:
    line = call.line
    if re.search(r"\b(?:flushall|flushdb|shutdown|config set|swapdb)\b", line, re.I):
        yield high("empties or stops a database")
    if (
        re.search(r"(?:^| )(?:rm|remove|truncate) (?:-\w+ )*-?\w|mk --force", line)
        and call.name == "bq"
    ):
        yield high("drops or empties a table or database")
    if re.search(r"\.shell\b|\.system\b|\\!|\.output \||\bxp_cmdshell\b", line):
        yield high("runs a command from a database's program")
    if (
        call.name == "redis-cli"
        and call.scope.loops
        and re.search(r"\b(?:del|unlink)\b", line, re.I)
    ):
        yield high("empties a database")
    if call.stdin.kind in (Kind.DOWNLOAD, Kind.DECODED):
        yield high("runs what it downloads")
    local = call.name in ("sqlite3", "duckdb")
    if not (local and re.search(r"-readonly|:memory:|\bselect\b|\.schema|\.tables", line, re.I)):
        yield medium("talks to a database")


def _mongo(call: Call) -> Iterator[Finding]:
    text = call.line + call.stdin.text
    if re.search(
        r"\.drop\w*\(|dropDatabase|(?:deleteMany|remove|updateMany)\(\s*(?:\{\s*\})?[,)]|--drop\b",
        text,
    ):
        yield high("drops or empties a table or database")
    yield medium("talks to a database")


def _restore(call: Call) -> Iterator[Finding]:
    if call.has("-c", "--clean", "--drop"):
        yield high("replaces tables that may hold data")
    yield medium("changes a database")


def _admin(call: Call) -> Iterator[Finding]:
    if {"drop", "shutdown", "flush-privileges", "kill"} & set(call.texts):
        yield high("drops or stops a database")
    yield medium("changes a database")


def _manage(call: Call) -> Iterator[Finding]:
    """The management programs of web frameworks, and scripts of the same name."""
    line = call.line
    if re.search(
        r"\b(?:flush|reset_db|sqlflush|migrate \w+ zero|db:(?:drop|reset|purge)|dropdb)\b", line
    ):
        yield high("drops or empties a table or database")
    yield medium("runs the project's program")


RULES = by_name(
    {
        "aws gcloud az gsutil kubectl oc helm terraform tofu terragrunt pulumi heroku doctl"
        " flyctl eksctl": _cloud,
        "databricks dbfs s3cmd s5cmd mc b2 rclone azcopy hdfs hadoop cdk sls serverless vercel"
        " netlify": _cloud,
        "virsh vagrant minikube kind k3d nomad consul etcdctl influx rabbitmqctl supabase"
        " firebase gh glab": _cloud,
        "huggingface-cli hf kaggle modal sky dvc lakectl mlflow wandb airflow prefect alembic"
        " quarto": _cloud,
        "vault op bw doppler chamber sops keyring lpass gopass jupyter jupyter-server"
        " jupyter-lab mkdocs": _cloud,
        "docker podman docker-compose nerdctl": _docker,
        "dropdb dropuser mysqldrop": _drops,
        "psql mysql mariadb sqlite3 duckdb clickhouse-client snowsql sqlcmd bq cqlsh trino"
        " beeline hive": _sql,
        "redis-cli spark-sql presto usql valkey-cli": _sql,
        "mongosh mongo mongorestore": _mongo,
        "pg_restore": _restore,
        "mysqladmin": _admin,
        "rails rake manage.py django-admin": _manage,
    }
)
