"""Which functions of Python give a download, a secret, decoded text or a listing?"""

import re

from oh_kernel.security.tables import names

USUAL_NAMES = {
    "Path": "pathlib.Path",
    "PurePath": "pathlib.Path",
    "pd": "pandas",
    "pl": "polars",
    "np": "numpy",
    "sp": "subprocess",
    "b64decode": "base64.b64decode",
    "urlopen": "urllib.request.urlopen",
    "urlretrieve": "urllib.request.urlretrieve",
    "load_dotenv": "dotenv.load_dotenv",
    "dotenv_values": "dotenv.dotenv_values",
    "environ": "os.environ",
    "getenv": "os.getenv",
    "rmtree": "shutil.rmtree",
    "aiofiles": "io",
    "anyio": "io",
}
SAME_TEXT = set(
    names(
        """
    pathlib.Path pathlib.PurePath pathlib.PosixPath str bytes os.fspath os.path.expanduser
    os.path.expandvars os.path.abspath os.path.realpath os.path.normpath os.path.dirname sorted
    list tuple set reversed iter enumerate filter shlex.split shlex.quote tqdm tqdm.tqdm
    textwrap.dedent sqlalchemy.text text bytearray io.BytesIO io.StringIO repr itertools.chain
    itertools.islice sqlalchemy.sql.text os.path.basename copy.copy copy.deepcopy dict
    json.dumps
    """
    )
)
SAME_METHODS = set(
    names(
        """
    expanduser resolve absolute strip lstrip rstrip encode as_posix lower upper splitlines split
    with_suffix with_name relative_to copy items values read readline readlines getvalue json
    text title removeprefix removesuffix ljust rjust zfill sort tolist to_list format_map
    """
    )
)
TELLS_LITTLE = set(
    names(
        """
    len bool int float isinstance type hash hasattr callable id any all min max sum round range
    """
    )
)
LISTINGS = {
    "glob.glob": "",
    "glob.iglob": "",
    "os.listdir": "/*",
    "os.scandir": "/*",
    "os.walk": "/**/*",
    "os.fwalk": "/**/*",
}
LISTING_METHODS = {"glob", "rglob", "iterdir", "walk"}
DOWNLOADS = re.compile(
    r"(?:requests|httpx|aiohttp|cloudscraper)(?:\.(?:Async)?(?:Client|(?:Client)?Session"
    r"|session)\(\))?\.(?:get|post|request|stream|put)$"
    r"|urllib\.request\.(?:urlopen|urlretrieve)$|urllib3?\.\w+\(\)\.(?:request|urlopen)$|urlopen$"
    r"|(?:wget|gdown|pooch)\.\w+$|.*\bhf_hub_download$|.*\bsnapshot_download$|.*\.(?:recv"
    r"|recvfrom|recv_into)$"
    r"|.*\bdownload_(?:file|fileobj|as_\w+|blob|to_\w+|url)$"
    r"|http\.client\.\w+\(\)\.getresponse$|.*\.get_object$"
    r"|.*\bget_file_from_url$|paramiko.*\.get$|fsspec\.open$|torch\.hub\.download_url_to_file$"
    r"|tf\.keras\.utils\.get_file$"
)
DECODERS = re.compile(
    r"(?:base64|binascii|zlib|gzip|bz2|lzma|codecs|uu|quopri)\.(?!b64encode|compress|hexlify"
    r"|crc|encode|open|\w*encode\b)\w+$"
    r"|bytes\.fromhex$|bytearray\.fromhex$|marshal\.loads?$|chr$|.*Fernet\(\)\.decrypt$"
    r"|.*\.decrypt$"
)
SECRETS = re.compile(
    r"keyring\.get_\w+$|dotenv\.(?:dotenv_values|get_key)$|getpass\.getpass$|netrc\.netrc$"
    r"|browser_cookie3\.\w+$"
    r"|.*\.get_credentials$|.*\.get_frozen_credentials$|.*\.get_secret_value$"
    r"|.*\.access_secret_version$|.*userdata\.get$"
    r"|.*HfFolder\.get_token$|huggingface_hub\.get_token$|get_token$|.*\.get_parameter$"
    r"|.*dbutils\.secrets\.get$"
    r"|.*\.read_secret\w*$|streamlit\.secrets.*|st\.secrets.*|.*generate_access_token$"
    r"|.*get_session_token$"
)
SECRET_NAME = re.compile(
    r"(?:^|_)(?:(?:api|secret|access|private|auth)_?(?:key|token)s?|passw(?:or)?d|passphrase"
    r"|secrets?|credentials?|bearer)$",
    re.I,
)
READS_TABLE = re.compile(
    r"(?:pandas|polars|pl|dask\.dataframe|geopandas|xr|xarray|pyarrow\.parquet)\.(?:read|scan"
    r"|open)_?\w*$"
)


PASSES_ON = set(
    names(
        """
    print json.dumps pprint.pformat pandas.Series pandas.DataFrame str.format map zip next vars
    """
    )
)
