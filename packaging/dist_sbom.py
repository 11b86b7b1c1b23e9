# SPDX-License-Identifier: Apache-2.0
"""What a wheel's program is made of, as SPDX 2.3 in JSON."""

from __future__ import annotations

import hashlib
import json
import time

import dist_wheel

OWN_LICENSE = "Apache-2.0"


def license_expression(libraries: list[dict]) -> str:
    others = sorted({library["license"] for library in libraries} - {OWN_LICENSE})
    return " AND ".join(
        [OWN_LICENSE, *(f"({name})" if " OR " in name else name for name in others)]
    )


def package(library: dict) -> dict:
    version = library["version"]
    return {
        "SPDXID": f"SPDXRef-{library['debian']}",
        "name": library["debian"],
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "sourceInfo": f"Debian source package; SHA-256 of its .dsc file: {library['dsc_sha256']}",
        "filesAnalyzed": False,
        "licenseConcluded": library["license"],
        "licenseDeclared": library["license"],
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": f"pkg:deb/debian/{library['debian']}@{version}?arch=source",
            }
        ],
    }


def text(libraries: list[dict], epoch: int) -> str:
    own = {
        "SPDXID": "SPDXRef-perftracker",
        "name": "perftracker",
        "versionInfo": dist_wheel.version(),
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": license_expression(libraries),
        "licenseDeclared": OWN_LICENSE,
        "copyrightText": "NOASSERTION",
    }
    described = [
        {
            "spdxElementId": "SPDXRef-DOCUMENT",
            "relationshipType": "DESCRIBES",
            "relatedSpdxElement": "SPDXRef-perftracker",
        }
    ]
    linked = [
        {
            "spdxElementId": "SPDXRef-perftracker",
            "relationshipType": "STATIC_LINK",
            "relatedSpdxElement": f"SPDXRef-{library['debian']}",
        }
        for library in libraries
    ]
    known = json.dumps(libraries, sort_keys=True) + dist_wheel.version() + str(epoch)
    digest = hashlib.sha256(known.encode()).hexdigest()[:32]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"perftracker-{dist_wheel.version()}",
        "documentNamespace": f"urn:perftracker:sbom:{digest}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
            "creators": ["Tool: perftracker-dist"],
        },
        "packages": [own, *(package(library) for library in libraries)],
        "relationships": described + linked,
    }
    return json.dumps(document, indent=2) + "\n"
