/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/jobcert.h"

#include "live/link/cryptolibrary.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* The same on all hosts, whose clocks may differ: the certificate is valid as long as the secret. */
#define VALID_FROM "200101000000Z" /* RFC 5280: years before 2050 have two digits */
#define VALID_TO "20991231235959Z"

struct crypto {
	__typeof__(EVP_Digest) *digest;
	__typeof__(EVP_sha256) *sha256;
	__typeof__(EVP_PKEY_new_raw_private_key) *new_key;
	__typeof__(EVP_PKEY_free) *key_free;
	__typeof__(X509_new) *certificate_new;
	__typeof__(X509_free) *certificate_free;
	__typeof__(X509_set_version) *set_version;
	__typeof__(X509_get_serialNumber) *serial;
	__typeof__(ASN1_INTEGER_set) *set_integer;
	__typeof__(X509_getm_notBefore) *not_before;
	__typeof__(X509_getm_notAfter) *not_after;
	__typeof__(ASN1_TIME_set_string) *set_time;
	__typeof__(X509_set_pubkey) *set_key;
	__typeof__(X509_get_subject_name) *subject;
	__typeof__(X509_NAME_add_entry_by_txt) *add_name;
	__typeof__(X509_set_issuer_name) *set_issuer;
	__typeof__(X509V3_EXT_conf_nid) *make_extension;
	__typeof__(X509_add_ext) *add_extension;
	__typeof__(X509_EXTENSION_free) *extension_free;
	__typeof__(X509_sign) *sign;
	__typeof__(BIO_new_file) *file_new;
	__typeof__(BIO_free) *file_free;
	__typeof__(PEM_write_bio_X509) *write_certificate;
	__typeof__(PEM_write_bio_PrivateKey) *write_key;
};

static int crypto_open(struct crypto *ret, struct err *err)
{
	const struct symbol table[] = {
		{ &ret->digest, "EVP_Digest" },
		{ &ret->sha256, "EVP_sha256" },
		{ &ret->new_key, "EVP_PKEY_new_raw_private_key" },
		{ &ret->key_free, "EVP_PKEY_free" },
		{ &ret->certificate_new, "X509_new" },
		{ &ret->certificate_free, "X509_free" },
		{ &ret->set_version, "X509_set_version" },
		{ &ret->serial, "X509_get_serialNumber" },
		{ &ret->set_integer, "ASN1_INTEGER_set" },
		{ &ret->not_before, "X509_getm_notBefore" },
		{ &ret->not_after, "X509_getm_notAfter" },
		{ &ret->set_time, "ASN1_TIME_set_string" },
		{ &ret->set_key, "X509_set_pubkey" },
		{ &ret->subject, "X509_get_subject_name" },
		{ &ret->add_name, "X509_NAME_add_entry_by_txt" },
		{ &ret->set_issuer, "X509_set_issuer_name" },
		{ &ret->make_extension, "X509V3_EXT_conf_nid" },
		{ &ret->add_extension, "X509_add_ext" },
		{ &ret->extension_free, "X509_EXTENSION_free" },
		{ &ret->sign, "X509_sign" },
		{ &ret->file_new, "BIO_new_file" },
		{ &ret->file_free, "BIO_free" },
		{ &ret->write_certificate, "PEM_write_bio_X509" },
		{ &ret->write_key, "PEM_write_bio_PrivateKey" },
	};

	return cryptolibrary_open(table, ARRAY_SIZE(table), err);
}

/* Of the purpose and the secret. */
static int digest(const struct crypto *crypto, const char *purpose, const char *secret,
		  unsigned char ret[JOBCERT_DIGEST], struct err *err)
{
	size_t purpose_len = strlen(purpose) + 1, secret_len = strlen(secret);
	_cleanup_free_ char *text = malloc(purpose_len + secret_len + 1);

	if (text == NULL)
		return err_set(err, ENOMEM, "out of memory");
	memcpy(text, purpose, purpose_len);
	memcpy(text + purpose_len, secret, secret_len + 1);
	/* Without the secret's NUL. */
	if (crypto->digest(text, purpose_len + secret_len, ret, NULL, crypto->sha256(), NULL) != 1)
		return err_set(err, EIO, "libcrypto cannot compute SHA-256");
	return 0;
}

static bool add_extension(const struct crypto *crypto, X509 *certificate, int id, const char *value)
{
	X509_EXTENSION *extension = crypto->make_extension(NULL, NULL, id, value);
	bool ret = extension != NULL && crypto->add_extension(certificate, extension, -1) == 1;

	crypto->extension_free(extension);
	return ret;
}

static bool fill(const struct crypto *crypto, X509 *certificate, EVP_PKEY *key)
{
	X509_NAME *name = crypto->subject(certificate);

	return crypto->set_version(certificate, 2) == 1 && /* counts from 0 */
	       crypto->set_integer(crypto->serial(certificate), 1) == 1 &&
	       crypto->set_time(crypto->not_before(certificate), VALID_FROM) == 1 &&
	       crypto->set_time(crypto->not_after(certificate), VALID_TO) == 1 &&
	       crypto->set_key(certificate, key) == 1 &&
	       crypto->add_name(name, "CN", MBSTRING_ASC, (const unsigned char *)JOBCERT_NAME, -1,
				-1, 0) == 1 &&
	       crypto->set_issuer(certificate, name) == 1 &&
	       add_extension(crypto, certificate, NID_basic_constraints, "critical,CA:TRUE") &&
	       add_extension(crypto, certificate, NID_subject_alt_name, "DNS:" JOBCERT_NAME) &&
	       /* Ed25519 has its own digest. */
	       crypto->sign(certificate, key, NULL) > 0;
}

static bool write_pem(const struct crypto *crypto, const char *path, X509 *certificate,
		      EVP_PKEY *key)
{
	BIO *file = crypto->file_new(path, "w");
	bool ret = file != NULL;

	if (ret)
		ret = certificate != NULL
			      ? crypto->write_certificate(file, certificate) == 1
			      : crypto->write_key(file, key, NULL, NULL, 0, NULL, NULL) == 1;
	if (file != NULL)
		(void)crypto->file_free(file);
	return ret;
}

int jobcert_write(const char *secret, const char *certificate_path, const char *key_path,
		  struct err *err)
{
	unsigned char seed[JOBCERT_DIGEST];
	struct crypto crypto;
	X509 *certificate;
	EVP_PKEY *key;
	int ret = crypto_open(&crypto, err);

	if (ret == 0)
		ret = digest(&crypto, "perftracker certificate", secret, seed, err);
	if (ret < 0)
		return ret;
	key = crypto.new_key(EVP_PKEY_ED25519, NULL, seed, sizeof(seed));
	certificate = crypto.certificate_new();
	if (key == NULL || certificate == NULL || !fill(&crypto, certificate, key))
		ret = err_set(err, EIO, "libcrypto cannot make a certificate");
	else if (!write_pem(&crypto, certificate_path, certificate, NULL))
		ret = err_set(err, EIO, "%s: cannot be written", certificate_path);
	else if (key_path != NULL && !write_pem(&crypto, key_path, NULL, key))
		ret = err_set(err, EIO, "%s: cannot be written", key_path);
	crypto.certificate_free(certificate);
	crypto.key_free(key);
	return ret;
}

int jobcert_digest(const char *secret, const char *purpose, uint8_t ret[JOBCERT_DIGEST],
		   struct err *err)
{
	struct crypto crypto;
	int r = crypto_open(&crypto, err);

	return r < 0 ? r : digest(&crypto, purpose, secret, ret, err);
}

int jobcert_password(const char *secret, const char *purpose, char ret[65], struct err *err)
{
	uint8_t bytes[JOBCERT_DIGEST];
	int r = jobcert_digest(secret, purpose, bytes, err);

	for (size_t i = 0; r == 0 && i < JOBCERT_DIGEST; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return r;
}
